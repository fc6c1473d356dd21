"""Callbacks are signed as Standard Webhooks says, with a secret that a cost centre shares with us. The package
``standardwebhooks`` is imported here alone.

A cost centre's secret is the HMAC-SHA-256 of its name, prefixed, with ``DOCTRIAGE_API__CALLBACK_SECRET`` as the key.
So none is kept, every process knows them all, and one of them does not tell another.
"""

from __future__ import annotations

import base64
import hmac
from datetime import UTC, datetime
from typing import Final

from pydantic import SecretStr
from standardwebhooks import Webhook

from models.errors import SettingsError
from pipeline.settings import ApiSettings

DERIVED_FOR: Final = "doctriage callback "
SECRET_PREFIX: Final = "whsec_"


def callback_secret(settings: ApiSettings, cost_centre: str) -> str:
    """As receivers write it, ``whsec_…``. Raises SettingsError where there is nothing to derive it from."""
    if settings.callback_secret is None:
        raise SettingsError(
            "callbacks need DOCTRIAGE_API__CALLBACK_SECRET, 32 characters or more that nobody can guess, the same for "
            "all that serve the API or look after its pool; `openssl rand -hex 32` prints some"
        )
    return _derived(settings.callback_secret, cost_centre)


def signed_headers(
    settings: ApiSettings, cost_centre: str, *, message_id: str, body: str, now: datetime | None = None
) -> dict[str, str]:
    """The three headers of a message. While ``callback_secret_before`` is set, receivers may check with either
    secret."""
    secrets = [callback_secret(settings, cost_centre)]
    if settings.callback_secret_before is not None:
        secrets.append(_derived(settings.callback_secret_before, cost_centre))
    sent_at = now or datetime.now(UTC)
    signatures = (Webhook(secret).sign(message_id, sent_at, body) for secret in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _derived(key: SecretStr, cost_centre: str) -> str:
    message = (DERIVED_FOR + cost_centre).encode()
    digest = hmac.digest(key.get_secret_value().encode(), message, "sha256")
    return SECRET_PREFIX + base64.b64encode(digest).decode("ascii")
