"""Keys of the API: how they are spelled, made and known again."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from models.errors import CredentialsRefused
from pipeline.store.api_keys import ApiKeyRecord, ApiKeyStore, ApiKeyTerms

PREFIX_CHARACTERS: Final = 10
SECRET_CHARACTERS: Final = 43
"""Of 62: 256 bits."""

PREFIX_ALPHABET: Final = string.ascii_lowercase + string.digits
SECRET_ALPHABET: Final = string.ascii_letters + string.digits

SPELLING: Final = re.compile(
    rf"dt_([{PREFIX_ALPHABET}]{{{PREFIX_CHARACTERS}}})_([{SECRET_ALPHABET}]{{{SECRET_CHARACTERS}}})", re.ASCII
)
NOBODY_S_SHA256: Final = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
"""Compared with where no key has the prefix, so that an answer takes as long."""


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"
    """Everything, and of all cost centres."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    prefix: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """As it is shown, once, and sent."""
        return f"dt_{self.prefix}_{self.secret}"

    @property
    def secret_sha256(self) -> str:
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


def new_key() -> ApiKey:
    return ApiKey(
        prefix=_random(PREFIX_ALPHABET, PREFIX_CHARACTERS), secret=_random(SECRET_ALPHABET, SECRET_CHARACTERS)
    )


def parsed_key(text: str) -> ApiKey | None:
    """None for what is not spelled as a key is."""
    match = SPELLING.fullmatch(text)
    return None if match is None else ApiKey(prefix=match[1], secret=match[2])


def create_key(store: ApiKeyStore, terms: ApiKeyTerms) -> ApiKey:
    key = new_key()
    store.add(terms, prefix=key.prefix, secret_sha256=key.secret_sha256)
    return key


def rotate_key(store: ApiKeyStore, prefix: str, *, grace_s: float) -> tuple[ApiKey, ApiKeyRecord]:
    """A new key on the same terms; the old one ends after ``grace_s``. Raises ``ApiKeyNotFound``."""
    key = new_key()
    record = store.replace(prefix, prefix=key.prefix, secret_sha256=key.secret_sha256, grace_s=grace_s)
    return key, record


def require_key(store: ApiKeyStore, text: str) -> ApiKeyRecord:
    """The key that was shown. Raises ``CredentialsRefused``; why a key does not hold is told only to whoever knows its
    secret."""
    shown = parsed_key(text)
    record = None if shown is None else store.find(shown.prefix)
    shown_sha256 = NOBODY_S_SHA256 if shown is None else shown.secret_sha256
    kept_sha256 = NOBODY_S_SHA256[::-1] if record is None else record.secret_sha256
    is_known = hmac.compare_digest(shown_sha256, kept_sha256)
    if record is None or not is_known:
        raise CredentialsRefused("there is no such key; check that it was copied whole, or ask for a new one")
    if not record.holds_at(time.time()):
        ended = "expired" if record.revoked_at_s is None else "was revoked"
        raise CredentialsRefused(f"the key {record.prefix} {ended}; ask for a new one")
    store.note_use(record)
    return record


def _random(alphabet: str, characters: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(characters))
