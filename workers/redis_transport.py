"""Redis as a broker that may hold what is no message. Named among Kombu's transports, so imported by Kombu."""

from __future__ import annotations

from typing import Final

import structlog
from kombu.transport.redis import Channel, Transport

UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What Kombu makes of an entry that is not JSON, or of JSON that is no envelope of a message."""

log = structlog.get_logger()


class TicketChannel(Channel):  # type: ignore[misc]
    def _brpop_read(self, **options: object) -> bool:
        """What cannot be read is out of its queue by then, and no reason for the worker to end."""
        try:
            return bool(super()._brpop_read(**options))
        except UNREADABLE as error:
            log.warning("message_thrown_away", reason="it is no message", error=type(error).__name__)
            return True


class TicketTransport(Transport):  # type: ignore[misc]
    Channel = TicketChannel
