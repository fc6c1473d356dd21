"""What documents cost and would cost, what may be spent, and the models that it is spent on."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from models.errors import (
    BodyMalformed,
    BodyUnsupported,
    CallbackUrlRefused,
    DocumentErased,
    DocumentFailed,
    DocumentNotFound,
    DocumentRejected,
    EngineUnavailable,
    PageFailed,
    PriorityRefused,
    RequestInvalid,
    TooManyAtOnce,
    UploadTooSlow,
)
from pipeline.chargeback.months import month_name, month_of
from pipeline.chargeback.sample_size import SampleSize, sample_size
from pipeline.chargeback.saved_quote import SavedQuote
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.planning.configured import load_plan
from pipeline.planning.model_profiles import load_profile, profile_names
from pipeline.store.statements import StatementStore
from workers.api import schema
from workers.api.access import Caller
from workers.api.answers import json_answer
from workers.api.arrivals import Arrival, received
from workers.api.declared import Upload, kinds, problems
from workers.api.documents_routes import visible
from workers.api.openapi import SAMPLE, upload_body
from workers.api.parts import Asking, House, Parts
from workers.api.quotes import QuoteOrder, quote_json
from workers.api.upload_order import upload_order
from workers.budget_json import budget_json
from workers.statement_files import json_text
from workers.statements import document_statement, read_statement, window_of

DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _written_day(value: object) -> object:
    """A number would be taken for seconds since 1970."""
    if isinstance(value, str) and not DAY.fullmatch(value):
        raise ValueError("write a day like 2026-11-30")
    return value


Day = Annotated[date, BeforeValidator(_written_day)]
Month = Annotated[str | None, Query(json_schema_extra={"pattern": schema.MONTH})]

router = APIRouter(prefix="/v1")


@router.post(
    "/quotes",
    response_model=SavedQuote,
    responses=problems(
        BodyMalformed,
        BodyUnsupported,
        RequestInvalid,
        UploadTooSlow,
        CallbackUrlRefused,
        PriorityRefused,
        DocumentFailed,
        TooManyAtOnce,
        EngineUnavailable,
        *kinds(DocumentRejected),
        *kinds(PageFailed),
    ),
    openapi_extra=upload_body(sample=SAMPLE),
)
async def make_quote(request: Request, asking: Asking, parts: House) -> Response:
    """What a document would cost, which is read on the CPU for that; with ``sample`` of some pages alone."""
    async with parts.uploads.entered(asking.team):
        arrival = await received(
            request,
            parts.blobs,
            max_bytes=parts.max_upload_bytes,
            idle_s=parts.settings.api.upload_idle_s,
            threads=parts.upload_threads,
        )
    try:
        with parts.quotes.entered(asking.team):
            quoted = await run_sync(_quoted, parts, asking, arrival)
    finally:
        parts.blobs.discard(arrival.snapshot)
    return json_answer(json.loads(quoted))


@router.get("/chargeback", response_model=schema.Statement, responses=problems(RequestInvalid))
def get_chargeback(
    asking: Asking,
    parts: House,
    first_day: Annotated[Day | None, Query(alias="from")] = None,
    end_day: Annotated[Day | None, Query(alias="to")] = None,
    by: StatementBy = StatementBy.COST_CENTRE,
) -> Response:
    """A statement of the days from the first up to, not including, the end; of the caller's cost centre and its
    projects, of all for an admin."""
    try:
        window = window_of(first_day, end_day, today=datetime.now(UTC).date())
    except ValueError as error:
        raise RequestInvalid(str(error), faults=(("from", str(error)), ("to", str(error)))) from error
    cost_centre = None if asking.is_admin else asking.cost_centre
    ledger = StatementStore(parts.store.database)
    statement, names = read_statement(ledger, by, window, cost_centre=cost_centre)
    return json_answer(json.loads(json_text(statement, names)))


@router.get(
    "/documents/{upload_id}/cost",
    response_model=schema.Statement,
    responses=problems(404, DocumentNotFound, DocumentErased, RequestInvalid),
)
def get_document_cost(asking: Asking, parts: House, upload_id: Upload) -> Response:
    """A statement of what the document has cost since it was sent, by model. Who else has sent it pays for that
    alone."""
    record = visible(parts, asking, upload_id)
    today = datetime.now(UTC).date()
    sent_on = min(today, datetime.fromtimestamp(record.created_at_s, UTC).date())
    statement = document_statement(
        StatementStore(parts.store.database),
        record.document_id,
        record.submission_id,
        window_of(sent_on, None, today=today),
    )
    return json_answer(json.loads(json_text(statement, {})))


@router.get("/budgets", response_model=schema.BudgetList, responses=problems(RequestInvalid))
def list_budgets(asking: Asking, parts: House, month: Month = None) -> Response:
    """Those that hold for the caller: its own, its team's and its projects'; all for an admin."""
    wanted = _month(month)
    this_month = month_of(time.time())
    budgets = parts.store.budgets
    stands = budgets.in_past_month(wanted) if wanted < this_month else budgets.in_month(wanted)
    shown = [budget_json(one) for one in stands if _concerns(asking, one.cost_centre)]
    return json_answer({"month": wanted, "budgets": shown})


@router.get("/models", response_model=schema.ModelList, responses=problems())
def list_models(_asking: Asking, parts: House) -> Response:
    """The model that pages are escalated to, and the profiles that are shipped."""
    settings = parts.settings.vlm
    plan = load_plan(settings)
    configured = {
        "is_configured": settings.is_configured,
        "model_id": plan.model_id,
        "profile": plan.profile,
        "concurrency": plan.concurrency,
        "tiers": [asdict(tier) for tier in plan.tiers],
        "max_output_tokens": plan.max_output_tokens,
    }
    profiles = [load_profile(name) for name in profile_names()]
    shipped = [
        {
            "name": profile.name,
            "hub_name": profile.hub_name,
            "family": profile.family_table.name,
            "context_tokens": profile.context_tokens,
        }
        for profile in profiles
    ]
    return json_answer({"configured": configured, "profiles": shipped})


def _quoted(parts: Parts, asking: Caller, arrival: Arrival) -> str:
    fields = dict(arrival.fields)
    sample = _sample(fields.pop("sample", None))
    order = upload_order(
        fields,
        file_name=arrival.file_name,
        document_id=arrival.snapshot.document_id,
        asking=asking,
        settings=parts.settings,
    )
    wished = order.wishes.settings(parts.settings)
    executor = wished.executor.model_copy(update={"jobs": 1})
    asked = QuoteOrder(
        settings=wished.model_copy(update={"executor": executor}),
        path=arrival.snapshot.path,
        name=order.name,
        cost_centre=order.cost_centre,
        password=order.password,
        sample=sample,
    )
    try:
        return quote_json(asked)
    except EngineUnavailable as error:
        if order.wishes.languages is None:
            raise
        raise RequestInvalid(str(error), faults=(("languages", str(error)),)) from error


def _sample(text: str | None) -> SampleSize | None:
    if not text:
        return None
    try:
        return sample_size(text)
    except ValueError as error:
        raise RequestInvalid(str(error), faults=(("sample", str(error)),)) from error


def _month(text: str | None) -> str:
    if text is None:
        return month_of(time.time())
    try:
        return month_name(text)
    except ValueError as error:
        raise RequestInvalid(str(error), faults=(("month", str(error)),)) from error


def _concerns(asking: Caller, cost_centre: str) -> bool:
    return asking.sees(cost_centre) or asking.cost_centre.startswith(f"{cost_centre}/")
