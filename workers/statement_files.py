"""A statement as a file: CSV, JSON, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TextIO

from models.errors import SettingsError
from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text
from pipeline.chargeback.statement import Bill, CurrencyTotal, Statement, StatementLine
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.spreadsheet_text import inert

if TYPE_CHECKING:
    import pyarrow

SCHEMA_VERSION: Final = 1
CPU_S_DECIMALS: Final = 3

COUNTS: Final = (
    "pages",
    "vlm_pages",
    "cached_pages",
    "cpu_attempts",
    "vlm_calls",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "unpriced_entries",
    "avoided_tokens",
    "wasted_attempts",
    "wasted_tokens",
    "predicted_prompt_tokens",
    "billed_prompt_tokens",
)
AMOUNTS: Final = ("cost", "avoided_cost", "wasted_cost")

Cell = str | int | float | bool | None


def write_csv(statement: Statement, names: Mapping[str, str], stream: TextIO) -> None:
    """One line of the statement a row. ``names`` are those of documents, by id."""
    rows = csv.DictWriter(stream, _columns(statement.by))
    rows.writeheader()
    for line in statement.lines:
        record = _record(line, statement.by, names)
        keys = {name: inert(str(record[name] or "")) for name in _key_columns(statement.by)}
        rows.writerow({**record, **keys, "is_forced_vlm": str(line.is_forced_vlm).lower()})


def json_text(statement: Statement, names: Mapping[str, str]) -> str:
    """One JSON object. Amounts are text, exact."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "from": statement.first_day,
        "to": statement.end_day,
        "by": statement.by.value,
        "lines": [_record(line, statement.by, names) for line in statement.lines],
        "totals": [_total_record(total) for total in statement.totals],
        "unpriced": [{"model": model, "entries": entries} for model, entries in statement.unpriced.items()],
        "open_calls": {
            "calls": statement.open_calls.calls,
            "reserved_tokens": statement.open_calls.reserved_tokens,
        },
    }
    return json.dumps(document, ensure_ascii=False)


def parquet_bytes(statement: Statement, names: Mapping[str, str]) -> bytes:
    """The rows of the CSV file, with amounts as decimal numbers. Raises SettingsError where pyarrow is missing."""
    require_parquet()
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(_arrow_table(statement, names), buffer)
    return buffer.getvalue()


def require_parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            "Parquet needs the package pyarrow; pip install 'doctriage[parquet]', or choose --format csv"
        ) from error


def _key_columns(by: StatementBy) -> tuple[str, ...]:
    return ("document_id", "document") if by is StatementBy.DOCUMENT else (by.value.replace("-", "_"),)


def _columns(by: StatementBy) -> tuple[str, ...]:
    return (*_key_columns(by), "currency", "is_forced_vlm", *COUNTS, "cpu_s", *AMOUNTS)


def _record(line: StatementLine, by: StatementBy, names: Mapping[str, str]) -> dict[str, Cell]:
    keys: tuple[Cell, ...] = (line.key,)
    if by is StatementBy.DOCUMENT:
        keys = (line.key, names.get(line.key or ""))
    return {
        **dict(zip(_key_columns(by), keys, strict=True)),
        "currency": line.currency,
        "is_forced_vlm": line.is_forced_vlm,
        **_bill_record(line.bill),
    }


def _bill_record(bill: Bill) -> dict[str, Cell]:
    counts: dict[str, Cell] = {name: getattr(bill, name) for name in COUNTS}
    amounts = (bill.known_cost_micro, bill.known_avoided_micro, bill.known_wasted_micro)
    return {
        **counts,
        "cpu_s": round(bill.cpu_s, CPU_S_DECIMALS),
        **{
            name: None if micro is None else amount_text(micro, MONEY_DECIMALS)
            for name, micro in zip(AMOUNTS, amounts, strict=True)
        },
    }


def _total_record(total: CurrencyTotal) -> dict[str, object]:
    forced = total.forced
    return {
        "currency": total.currency,
        **_bill_record(total.bill),
        "forced_vlm": None if forced is None else _bill_record(forced),
        "forced_share": total.forced_share,
        "prediction_error": total.bill.prediction_error,
    }


def _arrow_table(statement: Statement, names: Mapping[str, str]) -> pyarrow.Table:
    import pyarrow

    amount = pyarrow.decimal128(38, MONEY_DECIMALS)
    types = {
        **{name: pyarrow.string() for name in (*_key_columns(statement.by), "currency")},
        "is_forced_vlm": pyarrow.bool_(),
        **{name: pyarrow.int64() for name in COUNTS},
        "cpu_s": pyarrow.float64(),
        **dict.fromkeys(AMOUNTS, amount),
    }
    records = [_with_decimals(_record(line, statement.by, names)) for line in statement.lines]
    return pyarrow.Table.from_pylist(records, schema=pyarrow.schema(types.items()))


def _with_decimals(record: Mapping[str, Cell]) -> dict[str, object]:
    amounts = {name: record[name] for name in AMOUNTS}
    return {
        **record,
        **{name: None if amount is None else Decimal(str(amount)) for name, amount in amounts.items()},
    }
