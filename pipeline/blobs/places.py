"""What ``DOCTRIAGE_BLOBS__URL`` may name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from models.errors import SettingsError, StoreUnavailable
from pipeline.blobs.shelf import Shelf
from pipeline.settings import BlobSettings

BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()/-]*")


def shared_folder(settings: BlobSettings) -> Path | None:
    """The folder of a file:// address; None for another or none. Raises ``SettingsError``."""
    if settings.url is None or not settings.url.startswith("file:"):
        return None
    parts = urlsplit(settings.url)
    if (
        parts.netloc not in ("", "localhost")
        or not parts.path.startswith("/")
        or parts.query
        or parts.fragment
    ):
        raise SettingsError("DOCTRIAGE_BLOBS__URL: write a folder in full, as file:///shared/doctriage")
    return Path(unquote(parts.path))


def remote_shelf(settings: BlobSettings) -> Shelf | None:
    """The store of an s3:// address; None for another or none. Nothing is asked of it yet. Raises ``SettingsError``,
    and ``StoreUnavailable`` where s3fs is missing."""
    if settings.url is None or settings.url.startswith("file:"):
        return None
    root = _bucket_and_prefix(settings.url)
    if settings.endpoint_url is not None:
        _require_address(settings.endpoint_url)
    try:
        from pipeline.blobs.s3 import S3Shelf  # not installed by everybody, and slow to import
    except ModuleNotFoundError as error:
        raise StoreUnavailable(
            f's3://{root}: {error.name} is not installed; pip install "doctriage[s3]"'
        ) from error
    return S3Shelf(root, settings)


def _bucket_and_prefix(url: str) -> str:
    """The address is in no message: it may have a password in it."""
    scheme, _, place = url.partition("://")
    bucket, _, prefix = place.partition("/")
    if scheme != "s3" or not BUCKET.fullmatch(bucket) or not PREFIX.fullmatch(prefix):
        raise SettingsError(
            "DOCTRIAGE_BLOBS__URL: write it as s3://bucket/prefix or file:///folder, with letters, digits and - _ . / "
            "in the prefix, and the key in DOCTRIAGE_BLOBS__KEY and DOCTRIAGE_BLOBS__SECRET"
        )
    return f"{bucket}/{prefix}".strip("/")


def _require_address(endpoint_url: str) -> None:
    parts = urlsplit(endpoint_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise SettingsError(
            "DOCTRIAGE_BLOBS__ENDPOINT_URL: write it as http://host:port or https://host:port, without a user"
        )
