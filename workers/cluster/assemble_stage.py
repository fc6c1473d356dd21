"""A source whose pages are all there gets its outputs, in the blob store."""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from models.errors import DocumentFailed
from models.pool import Queue
from pipeline.publish import DocumentOutput, ReadingUnfinished, document_outputs
from pipeline.store import SourceToAssemble
from workers.cluster.host import Host
from workers.cluster.observed import Work, nothing_found, observed_work
from workers.cluster.ocr_stage import password_of
from workers.cluster.wishes import Wishes
from workers.originals import original_of


def assemble(host: Host) -> Counter[Queue]:
    """One source, which no ticket follows. Raises ``StoreUnavailable``, and the source is given back."""
    with host.turn():
        source = host.store.pool.claim_assembly(
            owner=host.owner, lease_s=host.lease_s, weights=host.deployment.settings.pool.weights
        )
        if source is None:
            return nothing_found(Queue.ASSEMBLE)
        with observed_work(
            Queue.ASSEMBLE,
            host.owner,
            source.terms,
            source_id=source.source_id,
            document_id=source.document.document_id,
            reading_id=source.reading_id,
        ) as work:
            _assembled(host, source, work)
    return Counter()


def _assembled(host: Host, source: SourceToAssemble, work: Work) -> None:
    try:
        failed_pages = _written(host, source)
    except DocumentFailed as error:
        work.refuse(error.code)
        host.store.pool.source_written(
            source.source_id,
            owner=host.owner,
            failed_pages=source.document.page_count,
            error_code=error.code,
            error_message=str(error),
        )
    except ReadingUnfinished:
        host.store.pool.give_back(host.owner)
    else:
        host.store.pool.source_written(source.source_id, owner=host.owner, failed_pages=failed_pages)


def _written(host: Host, source: SourceToAssemble) -> int:
    """How many pages the outputs are without."""
    failed_pages = 0
    for output in document_outputs(
        host.store.pages,
        reading_id=source.reading_id,
        document=source.document,
        source=source.name,
        formats=Wishes.from_json(source.terms.wishes).formats,
        original=lambda: original_of(
            source.document,
            host.blobs,
            host.settings_of(source.terms),
            password_of(host, source.document, source.terms),
        ),
    ):
        failed_pages = _kept(host, source.source_id, output)
    return failed_pages


def _kept(host: Host, source_id: int, output: DocumentOutput) -> int:
    failed_pages = 0

    def write(stream: BinaryIO) -> None:
        nonlocal failed_pages
        failed_pages = output.write(stream)

    host.blobs.write_result(source_id, output.suffix, write)
    return failed_pages
