"""The only place that builds engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.settings import Settings

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines
    from pipeline.ports import PdfEngine


def build_engines(settings: Settings) -> Engines:
    """Every engine that the settings choose. Raises ``EngineUnavailable`` for one that is missing.

    Libraries are imported here, inside, so that who only submits or looks up loads none of them.
    """
    raise NotImplementedError


def build_pdf_engine() -> PdfEngine:
    """The engine that opens PDFs, for who only draws a page again."""
    from pipeline.engines.pdfium import PdfiumEngine

    return PdfiumEngine()
