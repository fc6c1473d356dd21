"""An S3-compatible store, through s3fs; the only file that imports it."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import s3fs  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import (
    ConnectionError as NotConnected,
)
from fsspec.exceptions import FSTimeoutError  # type: ignore[import-untyped]

from models.errors import StoreUnavailable, StoreUnreachable
from pipeline.settings import BlobSettings

PART_BYTES: Final = 8 * 2**20
PARTS_AT_ONCE: Final = 4
"""An upload holds that many parts in memory."""

CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 60
ATTEMPTS: Final = 2
"""botocore's, for what it takes to be over soon; and s3fs's of each of those, where an answer breaks off."""

AWAY: Final = frozenset({errno.EREMOTEIO, errno.EBUSY, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET})
"""What s3fs makes of a server's errors that pass: 500, 503, too many requests."""


class S3Shelf:
    """``root`` is bucket/prefix. Credentials that are not in the settings are looked for as AWS's own tools do."""

    def __init__(self, root: str, settings: BlobSettings) -> None:
        self.place = f"s3://{root}"
        self._root = root
        self._options = _options(settings)

    def put(self, copy: Path, name: str) -> None:
        with self._reached():
            self._store.put_file(
                str(copy), self._key(name), chunksize=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )

    def byte_count(self, name: str) -> int | None:
        with self._reached():
            try:
                return int(self._store.info(self._key(name))["size"])
            except FileNotFoundError:
                return None

    def chunks(self, name: str) -> Iterator[bytes]:
        with self._reached(passes_missing=True):
            reader = self._store.open(self._key(name), "rb", block_size=PART_BYTES)
        with reader:
            while True:
                with self._reached(passes_missing=True):
                    chunk: bytes = reader.read(PART_BYTES)
                if not chunk:
                    return
                yield chunk

    def names(self, folder: str) -> tuple[str, ...]:
        with self._reached():
            try:
                entries = self._store.ls(self._key(folder), detail=True)
            except FileNotFoundError:
                return ()
        return tuple(sorted(entry["name"].rpartition("/")[2] for entry in entries if entry["type"] == "file"))

    def move(self, name: str, new_name: str) -> None:
        with self._reached():
            try:
                self._store.cp_file(self._key(name), self._key(new_name))
            except FileNotFoundError:
                return
        self.remove([name])

    def remove(self, names: Sequence[str]) -> int:
        removed = 0
        for name in names:
            removed += self.byte_count(name) is not None
            with self._reached():
                bucket, key, _ = self._store.split_path(self._key(name))
                reply = self._store.call_s3("delete_object", Bucket=bucket, Key=key)
                if reply.get("VersionId") is not None:
                    self._remove_versions(bucket, key)
        return removed

    def _remove_versions(self, bucket: str, key: str) -> None:
        """In a bucket that keeps versions, a name that is deleted is only hidden."""
        while True:
            listed = self._store.call_s3("list_object_versions", Bucket=bucket, Prefix=key)
            versions = (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ()))
            of_key = [entry["VersionId"] for entry in versions if entry["Key"] == key]
            for version_id in of_key:
                self._store.call_s3("delete_object", Bucket=bucket, Key=key, VersionId=version_id)
            if not of_key:
                return

    @property
    def _store(self) -> Any:
        """s3fs keeps one a process for the same options, and makes a new one after a fork."""
        store = s3fs.S3FileSystem(**self._options)
        store.retries = ATTEMPTS
        return store

    def _key(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _reached(self, *, passes_missing: bool = False) -> Iterator[None]:
        """The library's errors in words that say what to do; what the server said may hold credentials, and is not
        among them."""
        try:
            yield
        except FileNotFoundError as error:
            if passes_missing:
                raise
            raise StoreUnavailable(
                f"{self.place}: there is no such bucket; create it, or correct DOCTRIAGE_BLOBS__URL"
            ) from error
        except (OSError, BotoCoreError, ClientError, aiohttp.ClientError, FSTimeoutError) as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, NoCredentialsError | PartialCredentialsError):
            return StoreUnavailable(
                f"{self.place}: no credentials; set DOCTRIAGE_BLOBS__KEY and DOCTRIAGE_BLOBS__SECRET, "
                "or those of the AWS tools"
            )
        if isinstance(error, PermissionError):
            return StoreUnavailable(
                f"{self.place}: the store refuses this key or what it may do ({_code_of(error)}); correct "
                "DOCTRIAGE_BLOBS__KEY and DOCTRIAGE_BLOBS__SECRET, and allow them to read, write, list and delete"
            )
        if isinstance(
            error, ConnectionError | TimeoutError | NotConnected | HTTPClientError | aiohttp.ClientError
        ) or (isinstance(error, OSError) and error.errno in AWAY):
            return StoreUnreachable(
                f"{self.place}: the store does not answer ({_code_of(error)}); check that it runs and that "
                "DOCTRIAGE_BLOBS__ENDPOINT_URL names it, and run again, finished pages are kept"
            )
        return StoreUnavailable(f"{self.place}: the store failed ({_code_of(error)}); its log may say more")


def _code_of(error: Exception) -> str:
    """The server's code for the error, such as InvalidAccessKeyId, or the name of what happened."""
    cause = error.__cause__
    if isinstance(cause, ClientError):
        return str(cause.response.get("Error", {}).get("Code", "no code"))
    return type(error).__name__


def _options(settings: BlobSettings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": {"total_max_attempts": ATTEMPTS, "mode": "standard"},
    }
    if settings.endpoint_url is not None:
        config |= {
            "request_checksum_calculation": "when_required"
        }  # stores but AWS's may not know the newer ones
    return {
        "key": settings.key,
        "secret": None if settings.secret is None else settings.secret.get_secret_value(),
        "endpoint_url": settings.endpoint_url,
        "config_kwargs": config,
        "use_listings_cache": False,
    }
