"""How often somebody may ask: by key, and by address for those who show wrong keys. ``limits`` is imported here alone.

The counts are in the pool's Redis where it has one, so that all servers count together, else in this process. While
Redis is away each process counts for itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from dataclasses import dataclass
from typing import Final

import structlog
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import MovingWindowRateLimiter

from models.errors import TooManyRequests
from pipeline.settings import Settings

WINDOW_S: Final = 60
REDIS_ANSWERS_WITHIN_S: Final = 0.5
REDIS_LEFT_ALONE_S: Final = 10.0
"""After it did not answer."""

REDIS_SCHEMES: Final = ("redis://", "rediss://")
IPV6_NETWORK_BITS: Final = 64
"""Whoever has one of its addresses has them all."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRoom:
    """``left`` of ``most`` requests in any ``WINDOW_S``; there is room for one more in ``more_in_s``."""

    most: int
    left: int
    more_in_s: int


class RequestLimits:
    def __init__(self, shared: Storage | None = None) -> None:
        self._shared = None if shared is None else MovingWindowRateLimiter(shared)
        self._own = MovingWindowRateLimiter(MemoryStorage())
        self._shared_from_s = 0.0

    def take(self, who: str, *, most_per_min: int) -> tuple[RequestRoom, bool]:
        """Take a request's place; False where there is none, and what room there is."""
        item = RateLimitItemPerMinute(most_per_min)
        key = hashlib.sha256(who.encode()).hexdigest()[:32]
        if self._shared is not None and time.monotonic() >= self._shared_from_s:
            try:
                return _taken(self._shared, item, key)
            except StorageError as error:
                self._shared_from_s = time.monotonic() + REDIS_LEFT_ALONE_S
                log.warning("requests_counted_alone", reason=str(error.storage_error))
        return _taken(self._own, item, key)

    def note_failed_login(self, address: str, *, most_per_min: int) -> None:
        """Raises ``TooManyRequests`` where this address showed too many wrong keys within a minute. Right ones are
        taken from it all the same: others may come from there too."""
        room, is_taken = self.take(f"failed {_network(address)}", most_per_min=most_per_min)
        if not is_taken:
            raise TooManyRequests(
                f"too many wrong keys came from your address; try again in {room.more_in_s} s, with a right one",
                retry_after_s=room.more_in_s,
            )


def request_limits(settings: Settings) -> RequestLimits:
    """Nothing is connected yet. Raises SettingsError for an address of the broker that is none."""
    url = settings.pool.broker_url
    if url is None or not url.get_secret_value().startswith(REDIS_SCHEMES):
        return RequestLimits()
    from workers.broker import broker_url

    return RequestLimits(
        storage_from_string(  # type: ignore[arg-type]  # none of its asynchronous ones
            broker_url(url),
            wrap_exceptions=True,
            key_prefix="doctriage-requests",
            socket_timeout=REDIS_ANSWERS_WITHIN_S,
            socket_connect_timeout=REDIS_ANSWERS_WITHIN_S,
        )
    )


def _taken(
    limiter: MovingWindowRateLimiter, item: RateLimitItemPerMinute, key: str
) -> tuple[RequestRoom, bool]:
    is_taken = limiter.hit(item, key)
    stats = limiter.get_window_stats(item, key)
    room = RequestRoom(
        most=item.amount,
        left=max(0, stats.remaining),
        more_in_s=min(WINDOW_S, max(1, math.ceil(stats.reset_time - time.time()))),
    )
    return room, is_taken


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed.packed, IPV6_NETWORK_BITS), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
