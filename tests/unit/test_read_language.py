"""Pages that turn out not to be English are read again, and the surer reading stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from PIL import Image

from models.choices import RoutePolicy
from models.errors import SettingsError
from models.geometry import Box
from models.page import PageReading, PageScore, Signal
from models.text import Line, Word
from pipeline.engines.language import LangidIdentifier
from pipeline.language_choice import LanguageChoice
from pipeline.policy import load_policy
from pipeline.ports import PageRaster, ScriptSight
from pipeline.read import Readers, read_page
from pipeline.scripts import installed_scripts
from pipeline.settings import ReadSettings, load_settings
from pipeline.triage import triage_page
from pipeline.upright import UprightPage
from tests.fakes.engines import NoSkew, NoTurn
from tests.fakes.pages import page_image

GERMAN = "Die Gemeinde hat beschlossen, den alten Weg am Flussufer im kommenden Jahr zu erneuern und zu beleuchten."
ENGLISH = (
    "The council has decided to renew the old path along the river next year and to put up lamps beside it."
)
RUSSIAN = "Утром пароход вышел из гавани"
UKRAINIAN = "Вранці її корабель вийшов із гавані"
HEBREW = "הספינה"
INSTALLED = ("Latin", "chi_sim", "chi_tra", "eng", "heb", "rus", "ukr")


def lines_of(text: str, confidence: float) -> tuple[Line, ...]:
    box = Box(10, 60, 1_700, 90)
    words = tuple(
        Word(text=word, box=Box(10 + 80 * place, 60, 80 + 80 * place, 90), confidence=confidence)
        for place, word in enumerate(text.split())
    )
    return (Line(text=text, box=box, confidence=confidence, words=words),)


@dataclass
class OcrOfLanguages:
    """Reads a text and a confidence for each language."""

    readings: dict[str, tuple[str, float]]
    asked: list[tuple[str, ...]] = field(default_factory=list)
    name: str = "tesseract"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        self.asked.append(tuple(languages))
        return lines_of(*self.readings[languages[0]])


@dataclass
class Scripts:
    """Sees a script, and glances at a text and a confidence for each language; at rubbish for all others."""

    seen: ScriptSight | None = None
    readings: dict[str, tuple[str, float]] = field(default_factory=dict)
    is_asked: bool = False

    def sight(self, image: Image.Image, *, dpi: float) -> ScriptSight | None:
        self.is_asked = True
        return self.seen

    def glance(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        return lines_of(*self.readings.get(languages[0], ("~f .: 3", 0.2)))


def saw(script: str, confidence: float, *, turn_deg: int = 0, turn_confidence: float = 12.0) -> ScriptSight:
    return ScriptSight(
        script=script, confidence=confidence, turn_deg=turn_deg, turn_confidence=turn_confidence
    )


def read(
    ocr: OcrOfLanguages, scripts: Scripts | None = None, *, installed: Sequence[str] = INSTALLED
) -> tuple[PageReading, UprightPage]:
    choice = LanguageChoice(
        identifier=LangidIdentifier(),
        latin=("Latin",),
        reader=scripts or Scripts(),
        scripts=installed_scripts(installed),
    )
    readers = Readers(ocr=ocr, orientation=NoTurn(), skew=NoSkew(), language_choice=choice)
    raster = PageRaster(page_number=1, image=page_image("a page with some words"), dpi=100)
    return read_page(raster, None, readers=readers, settings=ReadSettings())


def text_of(reading: PageReading) -> str:
    return " ".join(line.text for line in reading.lines)


def signal(reading: PageReading, name: str) -> float | None:
    return {signal.name: signal.measured for signal in reading.signals}.get(name)


@pytest.mark.parametrize(("latin", "kept"), [(0.95, 0.95), (0.6, 0.8)])
def test_german_is_read_again_and_the_surer_reading_stays(latin: float, kept: float) -> None:
    ocr = OcrOfLanguages({"eng": (GERMAN, 0.8), "Latin": (GERMAN, latin)})
    reading, _ = read(ocr)
    assert reading.lines[0].confidence == pytest.approx(kept)
    assert ocr.asked == [("eng",), ("Latin",)]


@pytest.mark.parametrize("text", [ENGLISH, "x4 Gj9 //tr8 0,6"])
def test_english_and_garbage_are_read_once(text: str) -> None:
    ocr, scripts = OcrOfLanguages({"eng": (text, 0.8)}), Scripts()
    read(ocr, scripts)
    assert ocr.asked == [("eng",)]
    assert not scripts.is_asked


@pytest.mark.parametrize("seen", [None, saw("Japanese", 0.6), saw("Cyrillic", 19.0), saw("Latin", 21.0)])
def test_a_page_that_reads_surely_in_another_script_is_read_in_it(seen: ScriptSight | None) -> None:
    ocr = OcrOfLanguages({"eng": ("YTpom napoxoq", 0.4), "rus": (RUSSIAN, 0.9)})
    reading, _ = read(ocr, Scripts(seen, {"rus": (RUSSIAN, 0.9), "heb": (HEBREW, 0.3)}))
    assert text_of(reading) == RUSSIAN
    assert ocr.asked == [("eng",), ("rus",)]


@pytest.mark.parametrize(("ukrainian", "chosen"), [(0.9, "ukr"), (0.75, "rus"), (0.6, "rus")])
def test_among_the_languages_of_a_script_the_one_that_is_clearly_surer_reads(
    ukrainian: float, chosen: str
) -> None:
    ocr = OcrOfLanguages({"eng": ("YTpom napoxoq", 0.4), "ukr": (UKRAINIAN, 0.9), "rus": (UKRAINIAN, 0.7)})
    read(ocr, Scripts(None, {"rus": (UKRAINIAN, 0.7), "ukr": (UKRAINIAN, ukrainian)}))
    assert ocr.asked[1:] == [(chosen,)]


@pytest.mark.parametrize("seen", [None, saw("Han", 9.0)])
def test_traditional_chinese_is_told_from_simplified(seen: ScriptSight | None) -> None:
    text = "輪船清晨離開港口"
    ocr = OcrOfLanguages({"eng": ("ae ZAI", 0.1), "chi_tra": (text, 0.9)})
    read(ocr, Scripts(seen, {"chi_sim": (text, 0.65), "chi_tra": (text, 0.9)}))
    assert ocr.asked == [("eng",), ("chi_tra",)]


@pytest.mark.parametrize(("kana", "chosen"), [(0.75, "jpn"), (0.4, "chi_tra")])
def test_surely_read_kana_are_japanese_though_chinese_reads_as_surely(kana: float, chosen: str) -> None:
    ocr = OcrOfLanguages({"eng": ("ae ZAI", 0.1), chosen: ("輪船清晨離開港口", 0.9)})
    japanese = ("船は早朝に港を出て", kana)
    scripts = Scripts(None, {"jpn": japanese, "chi_tra": ("輪船清晨離開港口", 0.8)})
    read(ocr, scripts, installed=("chi_tra", "jpn"))
    assert ocr.asked == [("eng",), (chosen,)]


@pytest.mark.parametrize(
    ("glanced", "confidence"), [("漢字手書き文字", 0.45), ("Гу5 3 words of Latin letters", 0.9)]
)
def test_handwriting_that_looks_like_another_script_is_read_once(glanced: str, confidence: float) -> None:
    ocr = OcrOfLanguages({"eng": ("lehv cn ,Geuk", 0.3)})
    read(ocr, Scripts(saw("Japanese", 0.9), {"chi_sim": (glanced, confidence), "rus": (glanced, confidence)}))
    assert ocr.asked == [("eng",)]


def test_the_first_reading_stays_where_the_other_script_is_not_clearly_surer() -> None:
    ocr = OcrOfLanguages({"eng": ("ABCXYZ", 0.65), "rus": (RUSSIAN, 0.7)})
    reading, _ = read(ocr, Scripts(None, {"rus": (RUSSIAN, 0.9)}))
    assert text_of(reading) == "ABCXYZ"
    assert ocr.asked == [("eng",), ("rus",)]


@pytest.mark.parametrize(("sight_confidence", "kept"), [(60.0, HEBREW), (3.0, "D7N NIN")])
def test_pointed_hebrew_needs_a_sure_sight(sight_confidence: float, kept: str) -> None:
    ocr = OcrOfLanguages({"eng": ("D7N NIN", 0.3), "heb": (HEBREW, 0.35)})
    reading, _ = read(ocr, Scripts(saw("Hebrew", sight_confidence), {"heb": (HEBREW, 0.35)}))
    assert text_of(reading) == kept


@pytest.mark.parametrize(("turn_confidence", "rotation_deg"), [(12.0, 180), (3.0, 0)])
def test_a_page_of_another_script_is_turned_where_the_sight_is_sure(
    turn_confidence: float, rotation_deg: int
) -> None:
    ocr = OcrOfLanguages({"eng": ("D7N NIN", 0.3), "heb": (HEBREW, 0.9)})
    seen = saw("Hebrew", 60.0, turn_deg=180, turn_confidence=turn_confidence)
    reading, page = read(ocr, Scripts(seen, {"heb": (HEBREW, 0.9)}))
    assert page.rotation_deg == rotation_deg
    assert signal(reading, "rotation_deg") == rotation_deg


def test_a_latin_page_is_not_turned_by_the_sight() -> None:
    ocr = OcrOfLanguages({"eng": ("lehv cn ,Geuk", 0.3)})
    _, page = read(ocr, Scripts(saw("Latin", 9.0, turn_deg=180)))
    assert page.rotation_deg == 0


@pytest.mark.parametrize(
    ("seen", "unread"), [(saw("Thai", 12.0), 1.0), (saw("Thai", 2.0), None), (saw("Hebrew", 12.0), None)]
)
def test_a_script_of_which_nothing_is_installed_is_a_signal(seen: ScriptSight, unread: float | None) -> None:
    ocr = OcrOfLanguages({"eng": ("IIUIIUU UIUI", 0.1)})
    reading, _ = read(ocr, Scripts(seen))
    assert signal(reading, "script_unread") == unread
    assert text_of(reading) == "IIUIIUU UIUI"


def test_such_a_page_is_escalated() -> None:
    signals = (Signal(name="script_unread", measured=1.0),)
    decision = triage_page(
        PageScore(signals=signals, regions=()),
        policy=load_policy(),
        least_probability=1.0,
        route=RoutePolicy.AUTO,
    )
    assert decision.escalate
    assert decision.reasons[0].signal == "script_unread"


def test_script_models_serve_where_no_language_is_installed() -> None:
    (cyrillic,) = installed_scripts(["eng", "osd", "script/Cyrillic"])
    assert (cyrillic.name, cyrillic.languages) == ("Cyrillic", ("script/Cyrillic",))


def test_auto_stands_alone() -> None:
    with pytest.raises(SettingsError, match="auto stands alone"):
        load_settings({"read": {"languages": "auto+deu"}})
