"""Passwords of documents on their way to the workers: sealed with the pool's key, so that the database holds none."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken
from pydantic import SecretStr

from models.errors import SettingsError

NEW_KEY = "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"


def sealed(passwords: Sequence[str], key: SecretStr | None) -> str | None:
    """None for no password. Raises SettingsError without a key, or with one that is none."""
    if not passwords:
        return None
    if key is None:
        raise SettingsError(
            "passwords reach the workers sealed, and DOCTRIAGE_POOL__SECRET_KEY is not set; "
            f"make one for all machines of the pool: {NEW_KEY}"
        )
    return _fernet(key).encrypt(json.dumps(list(passwords)).encode()).decode("ascii")


def unsealed(text: str | None, key: SecretStr | None) -> tuple[str, ...]:
    """Raises SettingsError where this key does not open it."""
    if text is None:
        return ()
    if key is None:
        raise SettingsError("the submission has sealed passwords; set DOCTRIAGE_POOL__SECRET_KEY there too")
    try:
        return tuple(json.loads(_fernet(key).decrypt(text.encode("ascii"))))
    except InvalidToken as error:
        raise SettingsError(
            "another DOCTRIAGE_POOL__SECRET_KEY sealed the passwords; give all machines of the pool the same"
        ) from error


def _fernet(key: SecretStr) -> Fernet:
    try:
        return Fernet(key.get_secret_value())
    except ValueError as error:
        raise SettingsError(f"DOCTRIAGE_POOL__SECRET_KEY is no key; make one with {NEW_KEY}") from error
