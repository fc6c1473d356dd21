"""Uploads in tests of what follows from them."""

from __future__ import annotations

import secrets
import time
from typing import Any

from models.api_tables import UploadRow
from pipeline.store import Store
from pipeline.store.upload_records import NewUpload


def enter_upload(
    store: Store,
    submission_id: int,
    *,
    cost_centre: str = "harbour",
    key_id: int | None = None,
    **changes: Any,
) -> str:
    """The id of an upload that the submission came from."""
    row = UploadRow(
        upload_id=secrets.token_hex(16),
        submission_id=submission_id,
        cost_centre=cost_centre,
        key_id=key_id,
        **{"created_at_s": time.time(), **changes},
    )
    with store.database.write() as session:
        session.add(row)
        session.flush()
        return row.upload_id


def new_upload(**changes: Any) -> NewUpload:
    wishes: dict[str, Any] = {
        "upload_id": secrets.token_hex(16),
        "name": "inv.pdf",
        "output_stem": "inv.pdf",
        "blob_id": "ab" * 32,
        "byte_count": 10,
        "cost_centre": "harbour",
        "key_id": None,
        "submitter": None,
        "priority": 5,
        "wishes": {},
    }
    return NewUpload(**{**wishes, **changes})
