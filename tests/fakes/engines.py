"""Engines that crash, stall, raise, lie or just count. A page is known by its image's width in pixels."""

from __future__ import annotations

import errno
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from PIL import Image

from models.errors import EngineError, EngineUnavailable
from models.geometry import Box
from models.page import Region
from models.text import Line, Word
from pipeline.page_pipeline import Engines
from pipeline.ports import PageShape, PdfFacts, TextLayer
from pipeline.read import Readers
from pipeline.settings import Settings


class Fault(StrEnum):
    CRASH = "crash"
    CRASH_ONCE = "crash once"
    STALL = "stall"
    RAISE = "raise"
    ENGINE_ERROR = "engine error"
    LIE = "lie"
    UNAVAILABLE = "unavailable"
    DISK_FULL = "disk full"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOcr:
    """Reads every page as "page of WIDTH pixels". Each reading is a line in ``folder/calls``: width, pid."""

    folder: Path
    faults: Mapping[int, Fault] = field(default_factory=dict)
    read_s: float = 0.0
    version: str = "1"
    name: str = "tesseract"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        with (self.folder / "calls").open("a", encoding="ascii") as calls:
            calls.write(f"{image.width} {os.getpid()}\n")
        time.sleep(self.read_s)
        fault = self.faults.get(image.width)
        if fault is not None:
            self._misbehave(fault, image.width)
        confidence = math.nan if fault is Fault.LIE else 0.99
        return (_line(f"page of {image.width} pixels", confidence),)

    def _misbehave(self, fault: Fault, width_px: int) -> None:
        once = self.folder / f"crashed-{width_px}"
        match fault:
            case Fault.CRASH:
                os.kill(os.getpid(), signal.SIGSEGV)
            case Fault.CRASH_ONCE if not once.exists():
                once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            case Fault.STALL:
                time.sleep(600)
            case Fault.RAISE:
                raise RuntimeError("this engine raises what it likes")
            case Fault.ENGINE_ERROR:
                raise EngineError("this engine fails as agreed")
            case Fault.DISK_FULL:
                raise OSError(errno.ENOSPC, "No space left on device")
            case Fault.UNAVAILABLE:
                raise EngineUnavailable("no such language; install it")
            case _:
                pass


def _line(text: str, confidence: float) -> Line:
    words = tuple(
        Word(text=word, box=Box(10 + 70 * place, 60, 70 + 70 * place, 90), confidence=confidence)
        for place, word in enumerate(text.split())
    )
    return Line(text=text, box=Box(10, 60, 280, 90), confidence=confidence, words=words)


class NoTurn:
    def quarter_turn(self, image: Image.Image) -> tuple[int, float]:
        return 0, 1.0


class NoSkew:
    def skew_deg(self, image: Image.Image) -> float:
        return 0.0


class NoRegions:
    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        return ()


class NoPdf:
    """For runs over images alone."""

    def inspect(self, path: Path, password: str | None) -> PdfFacts:
        raise NotImplementedError

    def page_shapes(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> tuple[PageShape | None, ...]:
        raise NotImplementedError

    def render(self, path: Path, page_number: int, *, dpi: float, password: str | None) -> Image.Image:
        raise NotImplementedError

    def scan_damage(
        self, path: Path, page_number: int, *, password: str | None, is_suspect: bool
    ) -> bool | None:
        raise NotImplementedError

    def text_layers(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> Iterator[TextLayer]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeEngines:
    """Builds the engines in each worker, which gets a copy of this by pickle."""

    ocr: FakeOcr

    def __call__(self, settings: Settings) -> Engines:
        return Engines(
            pdf=NoPdf(),
            readers=Readers(ocr=self.ocr, orientation=NoTurn(), skew=NoSkew()),
            layout=NoRegions(),
            versions={"ocr": self.ocr.version},
        )
