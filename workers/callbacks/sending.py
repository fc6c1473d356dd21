"""One message to one receiver: to an address that was checked, and to no other.

The name is resolved once. The connection goes to what was found then, with the name in TLS and in the Host header, so
that a name that leads elsewhere a moment later leads nowhere. No proxy is asked and no redirect followed.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

import anyio
import httpx2

from models.errors import CallbackUrlRefused
from pipeline.settings import ApiSettings
from workers.callbacks.resolving import resolved
from workers.callbacks.targets import IpAddress, Target, allowed_addresses, callback_target

MOST_S: Final = 10.0
"""For all of it: the name, the connection, the answer."""
MOST_ANSWER_BYTES: Final = 64 * 1_024
MOST_ADDRESSES: Final = 3
"""That are tried, where one cannot be connected to."""


class Resolve(Protocol):
    def __call__(self, host: str, port: int, timeout_s: float) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``status`` is None where there was none; ``error`` says why, in words that name no inner address.
    ``retry_after_s`` is what the receiver asked for."""

    status: int | None
    error: str | None = None
    retry_after_s: float | None = None

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def send(
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    settings: ApiSettings,
    resolve: Resolve = resolved,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Takes ``MOST_S`` at most. ``tls`` is how receivers are known; by default by the authorities that this machine
    trusts."""
    started_s = time.monotonic()
    try:
        target = callback_target(url, settings)
        found = resolve(target.host, target.port, MOST_S)
        addresses = allowed_addresses(found, settings)
    except CallbackUrlRefused as error:
        return Answer(status=None, error=str(error))
    left_s = started_s + MOST_S - time.monotonic()
    return anyio.run(_sent, target, addresses[:MOST_ADDRESSES], body, headers, tls or _public_tls(), left_s)


@cache
def _public_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _sent(
    target: Target,
    addresses: Sequence[IpAddress],
    body: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext,
    left_s: float,
) -> Answer:
    with anyio.move_on_after(left_s):
        transport = httpx2.AsyncHTTPTransport(verify=tls, retries=0)
        async with httpx2.AsyncClient(transport=transport, timeout=MOST_S, trust_env=False) as client:
            for address in addresses:
                try:
                    return await _posted(client, target, address, body, headers)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    refused = _refused(error)
                except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
                    return Answer(status=None, error=_broken(error))
            return Answer(status=None, error=refused)
    return Answer(status=None, error=f"no answer within {MOST_S:g} s")


async def _posted(
    client: httpx2.AsyncClient, target: Target, address: IpAddress, body: bytes, headers: Mapping[str, str]
) -> Answer:
    host = f"[{address}]" if address.version == 6 else str(address)
    request = client.build_request(
        "POST",
        f"{target.scheme}://{host}:{target.port}{target.path}",
        content=body,
        headers={**headers, "host": target.host_header, "accept-encoding": "identity"},
        extensions={"sni_hostname": target.host},
    )
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        await _read_some(response)
    finally:
        await response.aclose()
    return _answer(response)


async def _read_some(response: httpx2.Response) -> None:
    """What it says is of no use, but who is cut off while answering may take that for a failure."""
    read_bytes = 0
    async for chunk in response.aiter_raw():
        read_bytes += len(chunk)
        if read_bytes >= MOST_ANSWER_BYTES:
            return


def _answer(response: httpx2.Response) -> Answer:
    status = response.status_code
    if response.is_success:
        return Answer(status=status)
    if response.is_redirect:
        return Answer(status=status, error=f"the receiver answered {status}; redirects are not followed")
    return Answer(
        status=status,
        error=f"the receiver answered {status}",
        retry_after_s=_seconds(response.headers.get("retry-after")),
    )


def _seconds(text: str | None) -> float | None:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= 6
    return float(text) if text is not None and is_number else None


def _refused(error: httpx2.TransportError) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return "the receiver did not take the connection in time"
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the receiver's certificate is not trusted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return "no connection to the receiver"


def _broken(error: Exception) -> str:
    return f"the receiver did not answer properly ({type(error).__name__})"
