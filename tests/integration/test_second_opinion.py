"""PaddleOCR reads what Tesseract was unsure of: the real engines, on a page in small noisy print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from models.document import Document, MediaType
from models.page import PageResult
from pipeline.page_pipeline import read_pages
from pipeline.planning.configured import load_plan
from pipeline.policy import load_policy
from pipeline.settings import ReadSettings, Settings
from tests.unit.signals.pages import blank_page, write
from workers.bootstrap import build_engines

ROWS = ["Granite Harbour Supplies", "Invoice 4471 of 3 March", "Twelve copper hinges", "Two tins of varnish"]


@pytest.fixture
def noisy_scan(tmp_path: Path) -> Path:
    """Print 12 px high, blurred, with grain: Tesseract hesitates, a reader can still make it out."""
    page = blank_page(size=(420, 300))
    for number, row in enumerate(ROWS * 2):
        write(page, row, 30, 20 + 30 * number, size=13)
    blurred = np.asarray(page.filter(ImageFilter.GaussianBlur(0.9)), dtype=np.float32)
    grain = np.random.default_rng(7).normal(0, 14, blurred.shape)
    path = tmp_path / "scan.png"
    Image.fromarray(np.clip(blurred + grain, 0, 255).astype(np.uint8)).save(path, dpi=(90, 90))
    return path


def read(path: Path, settings: Settings) -> PageResult:
    document = Document(
        document_id="0" * 64, media_type=MediaType.PNG, byte_count=path.stat().st_size, page_count=1
    )
    plan = load_plan(settings.vlm)
    [(_, result)] = read_pages(
        path, document, [1], build_engines(settings), settings, load_policy(), plan, None
    )
    assert isinstance(result, PageResult)
    return result


def test_a_noisy_scan_is_read_twice_and_the_better_reading_kept(noisy_scan: Path, tmp_path: Path) -> None:
    twice = read(noisy_scan, Settings(home=tmp_path / "home"))
    once = read(noisy_scan, Settings(home=tmp_path / "home", read=ReadSettings(second_opinion=False)))

    agreement = {signal.name: signal.measured for signal in twice.signals}["engine_agreement"]
    assert agreement is not None
    assert 0 < agreement < 1
    assert "engine_agreement" not in {signal.name for signal in once.signals}
    right = {row for row in ROWS if row in twice.text}
    assert len(right) >= 3
    assert len(right) > len({row for row in ROWS if row in once.text})
