"""PaddleOCR without Paddle, without a network and without a word on the terminal."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from models.errors import EngineUnavailable
from pipeline.engines.paddle_weights import DETECTION_MODEL, RECOGNITION_MODEL, prepared_model_dir
from pipeline.engines.paddleocr import PaddleOcrEngine
from pipeline.settings import PaddleSettings
from tests.fakes.papers import paper, printed

ALONE = """
import socket, sys
from pathlib import Path
from PIL import Image

def refused(*args, **kwargs):
    raise AssertionError("a connection was attempted")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from pipeline.engines.paddleocr import PaddleOcrEngine
from pipeline.settings import PaddleSettings
engine = PaddleOcrEngine(PaddleSettings(), weights_dir=Path(sys.argv[1]))
engine.read(Image.new("L", (300, 300), 255), dpi=100, languages=("eng",))
assert "paddle" not in sys.modules
"""


@pytest.fixture(scope="module")
def weights_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    prepared_model_dir(DETECTION_MODEL, folder)
    prepared_model_dir(RECOGNITION_MODEL, folder)
    return folder


def test_it_loads_and_reads_alone_and_in_silence(weights_dir: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, str(weights_dir)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_weights_are_laid_out_once_though_many_ask_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: prepared_model_dir(RECOGNITION_MODEL, tmp_path), range(4)))
    (folder,) = folders
    assert [entry.name for entry in tmp_path.iterdir()] == [folder.name]
    assert sorted(entry.name for entry in folder.iterdir()) == ["inference.onnx", "inference.yml"]
    config = yaml.safe_load((folder / "inference.yml").read_text(encoding="utf-8"))
    assert config["Global"]["model_name"] == RECOGNITION_MODEL
    assert len(config["PostProcess"]["character_dict"]) > 18_000


def test_half_a_folder_left_by_a_killed_process_is_no_model(tmp_path: Path, weights_dir: Path) -> None:
    draft = tmp_path / f".{DETECTION_MODEL}-killed"
    draft.mkdir()
    (draft / "inference.onnx").write_bytes(b"half")
    folder = prepared_model_dir(DETECTION_MODEL, tmp_path)
    whole = prepared_model_dir(DETECTION_MODEL, weights_dir)
    assert (folder / "inference.onnx").read_bytes() == (whole / "inference.onnx").read_bytes()


def test_a_user_may_bring_model_folders(tmp_path: Path, weights_dir: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(prepared_model_dir(RECOGNITION_MODEL, weights_dir), own)
    engine = PaddleOcrEngine(PaddleSettings(recognition_model_dir=own), weights_dir=weights_dir)
    page = printed(paper(150, tone=255, grain=0), 150, (1, 3), "read by my own model", size_pt=14)
    (line,) = engine.read(page, dpi=150, languages=("eng",))
    assert line.text == "read by my own model"
    assert engine.version != PaddleOcrEngine(PaddleSettings(), weights_dir=weights_dir).version


def test_a_folder_that_holds_no_model_is_named(tmp_path: Path, weights_dir: Path) -> None:
    settings = PaddleSettings(detection_model_dir=tmp_path)
    with pytest.raises(EngineUnavailable, match=r"no inference\.yml there"):
        PaddleOcrEngine(settings, weights_dir=weights_dir)


def test_a_model_of_another_name_is_an_error_that_says_so(tmp_path: Path, weights_dir: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(prepared_model_dir(RECOGNITION_MODEL, weights_dir), own)
    settings = PaddleSettings(recognition_model_name="PP-OCRv5_server_rec", recognition_model_dir=own)
    with pytest.raises(EngineUnavailable, match="PP-OCRv5_server_rec"):
        PaddleOcrEngine(settings, weights_dir=weights_dir)


def test_an_item_and_its_price_are_one_line(weights_dir: Path) -> None:
    engine = PaddleOcrEngine(PaddleSettings(), weights_dir=weights_dir)
    page = paper(150, tone=255, grain=0)
    for number, item in enumerate(("brown bread", "carrots", "dish soap")):
        printed(page, 150, (1, 2 + number * 0.4), item, size_pt=14)
        printed(page, 150, (3.5, 2 + number * 0.4), f"{number}.75", size_pt=14)
    lines = engine.read(page, dpi=150, languages=("eng",))
    assert [line.text for line in lines] == ["brown bread 0.75", "carrots 1.75", "dish soap 2.75"]
