"""Who asks, and what they may: by a key of the API, or by a token of the issuer that the settings name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import (
    CostCentreRefused,
    CredentialsRefused,
    IssuerUnavailable,
    NotAuthenticated,
    PriorityRefused,
    ScopeMissing,
    SettingsError,
    StoreUnavailable,
    TooManyRequests,
)
from models.pool import DEFAULT_PRIORITY, HIGHEST_PRIORITY
from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE, team_of
from pipeline.settings import Settings, is_loopback
from pipeline.store import Store
from pipeline.store.api_keys import ApiKeyRecord
from workers.api.limits import WINDOW_S, RequestLimits, RequestRoom, request_limits
from workers.api_keys import Scope as KeyScope
from workers.api_keys import require_key

if TYPE_CHECKING:
    from workers.api.tokens import TokenHolder, Tokens

ALL_SCOPES: Final = frozenset(str(scope) for scope in KeyScope)
READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

HOW_TO_ASK: Final = "send `Authorization: Bearer KEY` or `X-API-Key: KEY` (`doctriage keys create` makes one)"
REALM: Final = 'Bearer realm="doctriage"'

HIDDEN_UNTIL_SENT: Final = "access"
"""The part of a request's state in which the headers of its answer wait."""


ShownBearer = Annotated[
    object,
    Security(
        HTTPBearer(
            auto_error=False,
            scheme_name="bearer",
            description="A key, or a token of the issuer that is set up.",
        )
    ),
]
ShownKey = Annotated[
    object,
    Security(APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="key", description="A key.")),
]
"""Named for the schema; ``Access`` reads the headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``key_id`` is None for whoever came without a key. ``name`` tells callers apart, and is no secret. None is the
    deployment's own limit. ``max_priority`` is the highest that they may name."""

    key_id: int | None
    cost_centre: str
    scopes: frozenset[str]
    is_admin: bool
    name: str = "everybody"
    requests_per_min: int | None = None
    max_open_documents: int | None = None
    max_priority: int = DEFAULT_PRIORITY
    is_everybody: bool = False

    @property
    def team(self) -> str | None:
        """With which it shares its places among others; None on a server that asks nobody who they are."""
        return None if self.is_everybody else team_of(self.cost_centre)

    def sees(self, cost_centre: str) -> bool:
        """Whether it is the caller's own, or a project of it; an admin sees all."""
        return (
            self.is_admin or cost_centre == self.cost_centre or cost_centre.startswith(f"{self.cost_centre}/")
        )

    def require_cost_centre(self, cost_centre: str) -> None:
        """Raises ``CostCentreRefused`` where the caller may not let it pay."""
        if not self.sees(cost_centre):
            raise CostCentreRefused(
                f"you act for {self.cost_centre!r}, and may name it or one of its projects, not {cost_centre!r}"
            )

    def priority(self, named: int | None) -> int:
        """Of what is sent: the one that was named, else the usual one as far as the caller may. Raises
        ``PriorityRefused``."""
        if named is None:
            return min(DEFAULT_PRIORITY, self.max_priority)
        if named > self.max_priority:
            raise PriorityRefused(
                f"the ceiling of your priorities is {self.max_priority}, and you named {named}; name "
                f"{self.max_priority} or less, or none, or ask whoever runs the server for a key with a higher ceiling"
            )
        return named

    def require_scope(self, scope: KeyScope) -> None:
        """Raises ``ScopeMissing``."""
        if not self.is_admin and scope not in self.scopes:
            raise ScopeMissing(
                f"this needs the scope {scope!s}, and yours are {' '.join(sorted(self.scopes)) or 'none'}; use "
                "another key",
                scope=str(scope),
            )


def caller(request: Request, _bearer: ShownBearer, _key: ShownKey) -> Caller:
    """A dependency: whoever asks, who may ask this and may ask now. Whoever only looks needs the scope ``read``, all
    else ``submit``. Raises ``NotAuthenticated``, ``ScopeMissing``, ``TooManyRequests`` and what the store raises."""
    access: Access = request.app.state.access
    headers = _waiting_headers(request)
    try:
        asking = access.identify(request)
    except NotAuthenticated as error:
        headers["www-authenticate"] = (
            f'{REALM}, error="invalid_token"' if isinstance(error, CredentialsRefused) else REALM
        )
        raise
    if access.is_open:
        return asking
    access.take_request(asking, headers)
    scope = KeyScope.READ if request.method in READING_METHODS else KeyScope.SUBMIT
    try:
        asking.require_scope(scope)
    except ScopeMissing as error:
        headers["www-authenticate"] = f'{REALM}, error="insufficient_scope", scope="{error.scope}"'
        raise
    return asking


class Access:
    """What ``app.state.access`` is. ``is_open``: whoever reaches this server may do everything."""

    def __init__(
        self, settings: Settings, store: Store, limits: RequestLimits, *, tokens: Tokens | None, is_open: bool
    ) -> None:
        self.is_open = is_open
        self._settings = settings.api
        self._everybody_s_cost_centre = settings.chargeback.default_cost_centre or DEFAULT_COST_CENTRE
        self._store = store
        self._limits = limits
        self._tokens = tokens

    def identify(self, request: Request) -> Caller:
        if self.is_open:
            _refuse_other_pages(request)
            return Caller(
                key_id=None,
                cost_centre=self._everybody_s_cost_centre,
                scopes=ALL_SCOPES,
                is_admin=True,
                max_priority=HIGHEST_PRIORITY,
                is_everybody=True,
            )
        shown = _shown_secret(request)
        try:
            return self._known(shown)
        except CredentialsRefused:
            address = "" if request.client is None else request.client.host
            self._limits.note_failed_login(address, most_per_min=self._settings.failed_logins_per_min)
            raise

    def still_holds(self, request: Request) -> bool:
        """Whether the key or token with which a request came is taken to this moment; where nobody can tell, it is."""
        if self.is_open:
            return True
        try:
            self._known(_shown_secret(request))
        except (NotAuthenticated, CostCentreRefused):
            return False
        except (StoreUnavailable, IssuerUnavailable):
            return True
        return True

    def take_request(self, asking: Caller, headers: dict[str, str]) -> None:
        """``headers`` say what room there is. Raises ``TooManyRequests``."""
        most = asking.requests_per_min or self._settings.requests_per_min
        room, is_taken = self._limits.take(f"caller {asking.name}", most_per_min=most)
        headers.update(_room_headers(room))
        if not is_taken:
            raise TooManyRequests(
                f"you asked more than {most:,} times within a minute; try again in {room.more_in_s} s",
                retry_after_s=room.more_in_s,
            )

    def most_open_documents(self, asking: Caller) -> int | None:
        """None where nobody counts."""
        if self.is_open:
            return None
        return asking.max_open_documents or self._settings.max_open_documents

    def require_room(self, asking: Caller) -> None:
        """Before a document is sent. Raises ``TooManyOpenDocuments``."""
        most = self.most_open_documents(asking)
        if most is not None:
            self._store.api_keys.require_room(
                key_id=asking.key_id, cost_centre=asking.cost_centre, max_open_documents=most
            )

    def _known(self, shown: str) -> Caller:
        from workers.api.tokens import is_token

        if self._tokens is not None and is_token(shown):
            return _token_caller(self._tokens.holder_of(shown), max_priority=self._settings.oidc.max_priority)
        return _key_caller(require_key(self._store.api_keys, shown))


def open_access(settings: Settings, store: Store, *, is_open: bool) -> Access:
    """Raises SettingsError."""
    tokens: Tokens | None = None
    if settings.api.oidc.is_configured:
        from workers.api.tokens import Tokens

        tokens = Tokens(settings.api.oidc)
    return Access(settings, store, request_limits(settings), tokens=tokens, is_open=is_open)


def require_loopback(host: str) -> None:
    """For a server that asks nobody who they are. Raises SettingsError where others than this machine reach it."""
    if not is_loopback(host):
        raise SettingsError(
            f"--insecure-no-auth lets everybody in who reaches {host}; listen on 127.0.0.1, or leave the option out "
            "and make a key with `doctriage keys create`"
        )


class AccessHeaders:
    """ASGI middleware: what ``caller`` found out is in the headers of the answer, also where it is a refusal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waiting: dict[str, str] = scope.setdefault("state", {}).setdefault(HIDDEN_UNTIL_SENT, {})

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in waiting.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, sent)


def _waiting_headers(request: Request) -> dict[str, str]:
    state: dict[str, dict[str, str]] = request.scope.setdefault("state", {})
    return state.setdefault(HIDDEN_UNTIL_SENT, {})


def _room_headers(room: RequestRoom) -> dict[str, str]:
    """As the IETF's draft on RateLimit header fields has them."""
    return {
        "ratelimit-policy": f'"requests";q={room.most};w={WINDOW_S}',
        "ratelimit": f'"requests";r={room.left};t={room.more_in_s}',
    }


def _shown_secret(request: Request) -> str:
    """Raises ``NotAuthenticated`` where there is none, and ``CredentialsRefused`` where there are two."""
    shown = {key.strip() for key in request.headers.getlist("x-api-key")}
    for authorization in request.headers.getlist("authorization"):
        kind, _, bearer = authorization.strip().partition(" ")
        shown.add(bearer.strip() if kind.lower() == "bearer" else "")
    shown.discard("")
    if len(shown) > 1:
        raise CredentialsRefused("the request shows two different keys; send one")
    if not shown:
        raise NotAuthenticated(f"the request does not say who asks; {HOW_TO_ASK}")
    return shown.pop()


def _refuse_other_pages(request: Request) -> None:
    """A page of the web that a browser on this machine shows can reach this server too, under a name of its own or
    from its own origin. Raises ``NotAuthenticated``."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    origin = request.headers.get("origin")
    if not is_loopback(host) or (origin is not None and not is_loopback(urlsplit(origin).hostname or "")):
        raise NotAuthenticated(
            "without keys this server answers programs of this machine alone; call it localhost, and from no page of "
            "another site"
        )


def _key_caller(key: ApiKeyRecord) -> Caller:
    scopes = frozenset(key.terms.scopes)
    return Caller(
        key_id=key.key_id,
        cost_centre=key.terms.cost_centre,
        scopes=ALL_SCOPES if KeyScope.ADMIN in scopes else scopes,
        is_admin=KeyScope.ADMIN in scopes,
        name=f"key {key.prefix}",
        requests_per_min=key.terms.requests_per_min,
        max_open_documents=key.terms.max_open_documents,
        max_priority=HIGHEST_PRIORITY if KeyScope.ADMIN in scopes else key.terms.max_priority,
    )


def _token_caller(holder: TokenHolder, *, max_priority: int) -> Caller:
    scopes = holder.scopes & ALL_SCOPES
    return Caller(
        key_id=None,
        cost_centre=holder.cost_centre,
        scopes=ALL_SCOPES if KeyScope.ADMIN in scopes else scopes,
        is_admin=KeyScope.ADMIN in scopes,
        name=f"token {holder.subject}",
        max_priority=HIGHEST_PRIORITY if KeyScope.ADMIN in scopes else max_priority,
    )
