"""Signatures of callbacks, checked by the reference library of Standard Webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from models.errors import SettingsError
from pipeline.settings import ApiSettings
from workers.callbacks.signing import callback_secret, signed_headers

SETTINGS = ApiSettings.model_validate({"callback_secret": "k" * 32})
ROTATED = ApiSettings.model_validate({"callback_secret": "n" * 32, "callback_secret_before": "k" * 32})
BODY = '{"type":"document.finished","data":{"name":"Prüfung.pdf"}}'


def test_a_secret_is_what_the_documentation_says() -> None:
    digest = hmac.new(b"k" * 32, "doctriage callback Häfen/crane".encode(), hashlib.sha256).digest()
    assert callback_secret(SETTINGS, "Häfen/crane") == "whsec_" + base64.b64encode(digest).decode()


def test_cost_centres_share_no_secret() -> None:
    assert len({callback_secret(SETTINGS, name) for name in ("a", "b", "a/b")}) == 3


def test_the_reference_library_takes_the_signature_and_no_changed_body() -> None:
    headers = signed_headers(SETTINGS, "harbour", message_id="msg_1", body=BODY)
    receiver = Webhook(callback_secret(SETTINGS, "harbour"))
    assert receiver.verify(BODY, headers)["data"]["name"] == "Prüfung.pdf"
    for body, other in ((BODY + " ", receiver), (BODY, Webhook(callback_secret(SETTINGS, "attic")))):
        with pytest.raises(WebhookVerificationError):
            other.verify(body, headers)
    old = signed_headers(
        SETTINGS, "harbour", message_id="msg_1", body=BODY, now=datetime(2026, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(WebhookVerificationError, match="too old"):
        receiver.verify(BODY, old)


def test_while_the_secret_changes_the_old_and_the_new_one_are_taken() -> None:
    headers = signed_headers(ROTATED, "harbour", message_id="msg_1", body=BODY)
    for settings in (SETTINGS, ROTATED):
        Webhook(callback_secret(settings, "harbour")).verify(BODY, headers)


def test_without_a_secret_nothing_is_signed() -> None:
    with pytest.raises(SettingsError, match="DOCTRIAGE_API__CALLBACK_SECRET"):
        callback_secret(ApiSettings(), "harbour")
