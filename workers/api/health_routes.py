"""For those who watch the server."""

from __future__ import annotations

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from workers.api import schema
from workers.api.answers import json_answer
from workers.api.declared import RETRY_AFTER, answer, problems
from workers.api.parts import Asking, House
from workers.api_keys import Scope

NOT_READY = 503
TEXT = CONTENT_TYPE_LATEST.partition(";")[0]

router = APIRouter()


@router.get("/healthz", response_model=schema.Health)
async def get_health() -> Response:
    """It is alive, however many of its threads are busy."""
    return json_answer({"status": "ok"})


@router.get(
    "/readyz",
    response_model=schema.Readiness,
    responses={
        NOT_READY: {**answer("Something is missing.", headers=RETRY_AFTER), "model": schema.Readiness}
    },
)
def get_readiness(parts: House) -> Response:
    """Whether all that it needs is there; what is not, by name."""
    wrong = parts.readiness.look()
    is_ready = not any(wrong.values())
    checks = {name: "ok" if fault is None else fault for name, fault in wrong.items()}
    content = {"status": "ready" if is_ready else "not ready", "checks": checks}
    headers = {} if is_ready else {"retry-after": "5"}
    return json_answer(content, status=200 if is_ready else NOT_READY, headers=headers)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: answer("All metrics.", content={TEXT: {"schema": {"type": "string"}}}), **problems()},
)
def get_metrics(request: Request, asking: Asking) -> Response:
    """For Prometheus; cost centres are among them, so the caller is an admin."""
    asking.require_scope(Scope.ADMIN)
    return Response(
        generate_latest(request.app.state.metrics.registry), headers={"content-type": CONTENT_TYPE_LATEST}
    )
