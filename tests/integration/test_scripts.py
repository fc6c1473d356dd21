"""Pages in other scripts than Latin, by the real Tesseract and the languages of ``requirements/debian.txt``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from models.page import PageReading
from pipeline.ports import PageRaster
from pipeline.read import Readers, read_page
from pipeline.settings import ReadSettings, Settings
from tests.fakes.papers import paper
from tests.kinds.paper import font_path
from workers.bootstrap import build_engines

SAMPLES = Path(__file__).parent.parent.parent / "samples"
DPI = 150
RUSSIAN = (
    "Утром пароход вышел из гавани и медленно пошёл вверх по реке.",
    "На палубе сидели пассажиры, пили чай и говорили о погоде.",
    "Договор вступает в силу с момента его подписания сторонами",
    "и действует до полного исполнения всех обязательств.",
)
UKRAINIAN = (
    "Сьогодні ввечері в міському саду грає оркестр, і всі мешканці",
    "прийшли послухати музику. Її голос було чути здалеку, а діти",
    "бігали між деревами. Наступної неділі всі прийдуть знову,",
    "якщо тільки не піде дощ і не зіпсує їм свято.",
)
GREEK = (
    "Το πλοίο έφυγε από το λιμάνι νωρίς το πρωί και γύρισε αργά",
    "το βράδυ. Οι επιβάτες κάθονταν στο κατάστρωμα και μιλούσαν",
    "για τον καιρό. Η σύμβαση αρχίζει να ισχύει από την ημερομηνία",
    "υπογραφής της και από τα δύο μέρη που τη συνάπτουν.",
)
HEBREW = (
    "הספינה יצאה מהנמל בשעה מוקדמת בבוקר וחזרה רק לאחר השקיעה",
    "הנוסעים ישבו על הסיפון ודיברו על מזג האוויר ועל הדרך",
    "החוזה ייכנס לתוקף ביום חתימתו על ידי שני הצדדים",
    "ויעמוד בתוקפו עד לסיום כל ההתחייבויות שנקבעו בו",
)
ENGLISH = (
    "The ferry leaves the harbour at nine and comes back when the",
    "last passenger has gone ashore. Tickets are sold on the upper",
    "deck, bicycles travel free of charge in winter, and dogs are",
    "welcome if they are on a lead. No refunds are given.",
)


def page(lines: tuple[str, ...], *, face: str = "DejaVuSerif") -> Image.Image:
    sheet = paper(DPI)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.truetype(str(font_path(face)), 24, layout_engine=ImageFont.Layout.BASIC)
    for number in range(20):
        line = lines[number % len(lines)]
        is_hebrew = "\u0590" < line[0] < "\u0600"
        draw.text((130, 150 + 42 * number), line[::-1] if is_hebrew else line, font=font, fill=0)
    return sheet


@pytest.fixture(scope="module")
def readers() -> Readers:
    return build_engines(Settings()).readers


def read(image: Image.Image, readers: Readers, dpi: float = DPI) -> PageReading:
    raster = PageRaster(page_number=1, image=image, dpi=dpi)
    return read_page(raster, None, readers=readers, settings=ReadSettings())[0]


def text_of(reading: PageReading) -> str:
    return "\n".join(line.text for line in reading.lines)


def share_of_words(lines: tuple[str, ...], reading: PageReading) -> float:
    words = {word for line in lines for word in line.split()}
    return len(words & set(text_of(reading).split())) / len(words)


@pytest.mark.parametrize(
    ("lines", "face"),
    [(RUSSIAN, "DejaVuSerif"), (UKRAINIAN, "DejaVuSans"), (GREEK, "DejaVuSerif"), (HEBREW, "DejaVuSans")],
    ids=["russian", "ukrainian", "greek", "hebrew"],
)
def test_a_page_is_read_in_its_own_script(lines: tuple[str, ...], face: str, readers: Readers) -> None:
    assert share_of_words(lines, read(page(lines, face=face), readers)) > 0.8


@pytest.mark.parametrize("delivered_deg", [90, 180])
def test_a_page_that_lies_wrong_is_turned_and_read(delivered_deg: int, readers: Readers) -> None:
    reading = read(page(HEBREW, face="DejaVuSans").rotate(-delivered_deg, expand=True), readers)
    assert share_of_words(HEBREW, reading) > 0.8


def test_pointed_hebrew_at_a_low_resolution_is_hebrew(readers: Readers) -> None:
    with Image.open(SAMPLES / "hebrew.jpg") as image:
        letters = [c for c in text_of(read(image.convert("L"), readers, dpi=70)) if c.isalpha()]
    assert sum("\u05d0" <= c <= "\u05ea" for c in letters) > 0.9 * len(letters)


def test_a_page_in_a_script_that_is_not_installed_says_so(readers: Readers) -> None:
    choice = readers.language_choice
    assert choice is not None
    latin_only = replace(readers, language_choice=replace(choice, scripts=()))
    names = {signal.name for signal in read(page(RUSSIAN), latin_only).signals}
    assert "script_unread" in names


@pytest.mark.parametrize("lines", [ENGLISH, RUSSIAN], ids=["english", "russian"])
def test_what_can_be_read_has_no_such_signal(lines: tuple[str, ...], readers: Readers) -> None:
    assert "script_unread" not in {signal.name for signal in read(page(lines), readers).signals}
