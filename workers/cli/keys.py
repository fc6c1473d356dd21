"""``doctriage keys``: who may use the API, for which cost centre, and how far."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from models.pool import DEFAULT_PRIORITY, HIGHEST_PRIORITY
from pipeline.chargeback.echoes import echoed
from workers.cli.arguments import cost_centre, day, whole_number
from workers.cli.printable import printable

if TYPE_CHECKING:
    from pipeline.store.api_keys import ApiKeyRecord, ApiKeyStore

MOST_NAME_CHARACTERS = 100
MOST_REQUESTS_PER_MIN = 10_000
MOST_OPEN_DOCUMENTS = 1_000_000
UNIT_S = {"m": 60, "h": 3_600, "d": 86_400}
MOST_DURATION_S = 3_650 * 86_400
SCOPE_NAMES = ("read", "submit", "admin")

keys_app = typer.Typer(
    no_args_is_help=True, help="Keys of the API: who may use it, and for which cost centre."
)


def _grace_s(given: str | float) -> float:
    """Typer hands defaults over too, as they are."""
    return _duration_s(str(given), otherwise="0m for none")


def _duration_s(text: str, *, otherwise: str) -> float:
    match = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    duration_s = int(match[1]) * UNIT_S[match[2]] if match else MOST_DURATION_S + 1
    if duration_s > MOST_DURATION_S:
        raise typer.BadParameter(
            f"{echoed(text)} is no time up to ten years; write 30m, 24h or 90d, or {otherwise}"
        )
    return float(duration_s)


def _end_s(text: str) -> float:
    """A time from now, or the beginning of a day in UTC."""
    from datetime import UTC, datetime
    from datetime import time as time_of_day

    now_s = time.time()
    if re.fullmatch(r"[0-9]+[a-z]", text):
        end_s = now_s + _duration_s(text, otherwise="a day like 2027-03-01")
    else:
        end_s = datetime.combine(day(text), time_of_day(), UTC).timestamp()
    if end_s <= now_s:
        raise typer.BadParameter(f"{echoed(text)} is over already")
    return end_s


def _name(text: str) -> str:
    if not text or text != text.strip() or not text.isprintable() or len(text) > MOST_NAME_CHARACTERS:
        raise typer.BadParameter(
            f"{echoed(text)} is no name; at most {MOST_NAME_CHARACTERS} printable characters, no space at its ends"
        )
    return text


def _scopes(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """In the order of ``SCOPE_NAMES``. Typer hands defaults over too, as they are."""
    wanted = set(given.split(",")) if isinstance(given, str) else set(given)
    if not wanted or not wanted <= set(SCOPE_NAMES):
        raise typer.BadParameter(
            f"{echoed(str(given))} names none, or another than {', '.join(SCOPE_NAMES)}; write read,submit"
        )
    return tuple(name for name in SCOPE_NAMES if name in wanted)


def _max_priority(given: int | None, *, is_admin: bool) -> int:
    if not is_admin:
        return DEFAULT_PRIORITY if given is None else given
    if given is not None:
        raise typer.BadParameter("admin has no ceiling; leave it out", param_hint="--max-priority")
    return HIGHEST_PRIORITY


Prefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help="What follows dt_ in the key; `doctriage keys list` shows it.")
]
CostCentre = Annotated[
    str, typer.Argument(metavar="COST_CENTRE", help="A team, or TEAM/PROJECT.", parser=cost_centre)
]


@keys_app.command("create")
def create_command(
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", parser=_name, help="Whose it is, or what for; for the list of keys alone."
        ),
    ],
    for_cost_centre: Annotated[
        str,
        typer.Option(
            "--cost-centre",
            metavar="COST_CENTRE",
            parser=cost_centre,
            help="Pays for what the key submits; its documents, and those of its projects, the key may see.",
        ),
    ],
    scopes: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            parser=_scopes,
            help="read, submit, or both with a comma; admin may do everything, for all cost centres.",
        ),
    ],
    expires: Annotated[
        float | None,
        typer.Option(
            metavar="TIME|DAY", parser=_end_s, help="Such as 90d, or 2027-03-01 (UTC); by default never."
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, MOST_REQUESTS_PER_MIN),
            metavar="N",
            help="By default DOCTRIAGE_API__REQUESTS_PER_MIN.",
        ),
    ] = None,
    max_open_documents: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, MOST_OPEN_DOCUMENTS),
            metavar="N",
            help="That are being read at the same time; by default DOCTRIAGE_API__MAX_OPEN_DOCUMENTS.",
        ),
    ] = None,
    max_priority: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(0, HIGHEST_PRIORITY),
            metavar="N",
            help="The highest that its documents may have, of 0 last to 9 first; by default 5.",
        ),
    ] = None,
) -> None:
    """Make a key and print it. It is shown this once: what is kept of it does not tell it."""
    from pipeline.store.api_keys import ApiKeyTerms
    from workers.api_keys import create_key

    terms = ApiKeyTerms(
        name=name,
        cost_centre=for_cost_centre,
        scopes=tuple(scopes),
        requests_per_min=requests_per_minute,
        max_open_documents=max_open_documents,
        max_priority=_max_priority(max_priority, is_admin="admin" in scopes),
        expires_at_s=expires,
    )
    with _opened_keys() as keys:
        key = create_key(keys, terms)
    typer.echo(key.text)
    typer.echo(f"keep it now: it is not shown again; it acts for {printable(for_cost_centre)}", err=True)


@keys_app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the keys, with what they may and when they were used last. No secret is among that."""
    with _opened_keys() as keys:
        records = keys.keys()
    if as_json:
        typer.echo(json.dumps({"keys": [_document(one) for one in records]}, ensure_ascii=False))
        return
    if not records:
        typer.echo("no keys; `doctriage keys create` makes one")
        return
    from workers.cli.key_table import print_keys
    from workers.cli.terminal import open_console

    print_keys(open_console(), records, time.time())


@keys_app.command("revoke")
def revoke_command(prefix: Prefix) -> None:
    """End a key at once. What it submitted is read on."""
    with _opened_keys() as keys:
        record = keys.revoke(prefix)
    typer.echo(f"{record.prefix} ({printable(record.terms.name)}) holds no more")


@keys_app.command("rotate")
def rotate_command(
    prefix: Prefix,
    grace: Annotated[
        float, typer.Option(metavar="TIME", parser=_grace_s, help="How long the old key still holds.")
    ] = "24h",  # type: ignore[assignment]  # Typer has it parsed
) -> None:
    """Make a key on the terms of another and print it; the other one ends after --grace.

    One that was to hold for some time holds for as long again.
    """
    from workers.api_keys import rotate_key

    with _opened_keys() as keys:
        key, record = rotate_key(keys, prefix, grace_s=grace)
    typer.echo(key.text)
    typer.echo(
        f"keep it now: it is not shown again; it acts for {printable(record.terms.cost_centre)}, as {prefix} did",
        err=True,
    )


@keys_app.command("callback-secret")
def callback_secret_command(of_cost_centre: CostCentre) -> None:
    """Print the secret that a cost centre checks the signatures of its callbacks with."""
    from pipeline.settings import load_settings
    from workers.callbacks.signing import callback_secret

    typer.echo(callback_secret(load_settings().api, of_cost_centre))


@contextlib.contextmanager
def _opened_keys() -> Iterator[ApiKeyStore]:
    from pipeline.settings import load_settings
    from workers.submissions import opened_store

    with opened_store(load_settings()) as store:
        yield store.api_keys


def _document(record: ApiKeyRecord) -> dict[str, object]:
    terms = record.terms
    return {
        "prefix": record.prefix,
        "name": terms.name,
        "cost_centre": terms.cost_centre,
        "scopes": list(terms.scopes),
        "requests_per_minute": terms.requests_per_min,
        "max_open_documents": terms.max_open_documents,
        "max_priority": terms.max_priority,
        "created_at": _instant(record.created_at_s),
        "expires_at": _instant(terms.expires_at_s),
        "revoked_at": _instant(record.revoked_at_s),
        "last_used_at": _instant(record.last_used_at_s),
        "holds": record.holds_at(time.time()),
    }


def _instant(at_s: float | None) -> str | None:
    from datetime import UTC, datetime

    if at_s is None:
        return None
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
