"""The key that seals passwords on their way to the readers, where the settings name none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet
from pydantic import SecretStr

from models.errors import StoreUnavailable
from pipeline.settings import Settings

FILE_NAME: Final = "secret.key"
PRIVATE_MODE: Final = 0o600


def with_secret_key(settings: Settings) -> Settings:
    """The same with a key: the settings' own, or the one of the state folder, which is made where it is missing. Raises
    ``StoreUnavailable``."""
    if settings.pool.secret_key is not None:
        return settings
    key = SecretStr(_kept_key(settings.home / FILE_NAME))
    return settings.model_copy(update={"pool": settings.pool.model_copy(update={"secret_key": key})})


def _kept_key(path: Path) -> str:
    try:
        if not path.exists():
            _make(path)
        return path.read_text("ascii").strip()
    except OSError as error:
        raise StoreUnavailable(
            f"{path}: cannot be used ({error.strerror}); make the folder writable or set DOCTRIAGE_HOME"
        ) from error


def _make(path: Path) -> None:
    """Whole or not at all; of two that make one at once the first stays."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(Fernet.generate_key())
        try:
            os.link(own, path)
        except FileExistsError:
            return
    finally:
        own.unlink()
