"""The three kinds of place that blobs are kept in, as tests see them from behind: an S3 server, a share, the home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import boto3
from moto.server import ThreadedMotoServer
from pydantic import SecretStr

from pipeline.blobs import BlobStore, Snapshot
from pipeline.settings import BlobSettings

BUCKET = "documents"
PREFIX = "of/ours"
KEY, SECRET = "AKIATESTKEY", "do-not-show-this"


class Place(Protocol):
    """``overwrite`` is what a fault of the place, and none of ours, does to what lies there."""

    settings: BlobSettings

    def names(self) -> set[str]: ...
    def overwrite(self, name: str, content: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class FolderPlace:
    root: Path
    settings: BlobSettings

    def names(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def overwrite(self, name: str, content: bytes) -> None:
        (self.root / name).write_bytes(content)


@dataclass(frozen=True, slots=True)
class S3Place:
    client: Any
    settings: BlobSettings

    def names(self) -> set[str]:
        listed = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        return {entry["Key"].removeprefix(f"{PREFIX}/") for entry in listed}

    def overwrite(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{name}", Body=content)


@contextmanager
def running_s3() -> Iterator[str]:
    """Its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def empty_bucket(endpoint_url: str) -> Iterator[S3Place]:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=BUCKET)
    try:
        yield S3Place(client, s3_settings(endpoint_url))
    finally:
        for listed in client.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
            for entry in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
                client.delete_object(Bucket=BUCKET, Key=entry["Key"], VersionId=entry["VersionId"])
        client.delete_bucket(Bucket=BUCKET)
        client.close()


def s3_settings(endpoint_url: str, **changed: object) -> BlobSettings:
    return BlobSettings.model_validate(
        {
            "url": f"s3://{BUCKET}/{PREFIX}",
            "endpoint_url": endpoint_url,
            "key": KEY,
            "secret": SecretStr(SECRET),
            **changed,
        }
    )


def kept(blobs: BlobStore, folder: Path, content: bytes) -> str:
    """The id of a document of these bytes, which is in the store then."""
    snapshot = taken(blobs, folder, content)
    blobs.keep(snapshot)
    return snapshot.document_id


def taken(blobs: BlobStore, folder: Path, content: bytes) -> Snapshot:
    source = folder / "source"
    source.write_bytes(content)
    return blobs.take(source, max_bytes=2**30)


def blob_name(document_id: str) -> str:
    return f"blobs/{document_id[:2]}/{document_id}"
