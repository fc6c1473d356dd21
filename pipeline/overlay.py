"""A picture of what was read: word boxes by confidence, lines, regions and tables, a legend and the reasons.

Takes the JSON form of a page (``docs/output.md``), so that a stored result can be explained at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

SMALLEST_SIDE_PX: Final = 1000
LARGEST_SIDE_PX: Final = 2600
"""The picture's longer side is brought between these two, so that boxes and labels can be told apart."""

CONFIDENCE_COLOURS: Final[tuple[tuple[float, str, Colour], ...]] = (
    (0.8, "word, confidence 0.8 or more", (0, 158, 115)),
    (0.5, "word, 0.5 to 0.8", (230, 159, 0)),
    (0.0, "word, under 0.5", (213, 42, 0)),
)
NO_CONFIDENCE: Final[tuple[str, Colour]] = ("word of the text layer", (0, 114, 178))
LINE_COLOUR: Final[Colour] = (150, 150, 150)
AREA_COLOURS: Final[Mapping[str, Colour]] = {
    "table": (120, 40, 200),
    "stamp": (220, 0, 130),
    "handwriting": (0, 90, 60),
    "figure": (60, 60, 60),
    "uncovered_ink": (0, 140, 220),
}


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The page at drawing size. ``across`` and ``down`` turn the page's pixels into the picture's."""

    image: Image.Image
    across: float
    down: float
    stroke_px: int
    font: Font

    def box(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        left, right = sorted((box[0] * self.across, box[2] * self.across))
        top, bottom = sorted((box[1] * self.down, box[3] * self.down))
        return left, top, right, bottom


def draw_overlay(image: Image.Image, page: Mapping[str, Any]) -> Image.Image:
    """``image`` is the page as delivered, at any size; ``page`` is its JSON, with boxes in its own pixels.

    Returns a new "RGB" picture: the page with its boxes, and below it the legend and the reasons.
    """
    sheet = _sheet(image, page)
    veil = Image.new("RGBA", sheet.image.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(veil)
    _draw_areas(draw, sheet, page)
    _draw_lines(draw, sheet, page.get("lines", ()))
    _draw_labels(draw, sheet, page)
    drawn = Image.alpha_composite(sheet.image.convert("RGBA"), veil).convert("RGB")
    return _with_legend(drawn, sheet, page)


def _sheet(image: Image.Image, page: Mapping[str, Any]) -> _Sheet:
    longest = max(image.size)
    factor = min(max(longest, SMALLEST_SIDE_PX), LARGEST_SIDE_PX) / longest
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    scaled = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    side = max(size)
    return _Sheet(
        image=scaled,
        across=scaled.width / page["width_px"],
        down=scaled.height / page["height_px"],
        stroke_px=max(1, round(side / 900)),
        font=ImageFont.load_default(size=max(13, side // 75)),
    )


def confidence_colour(confidence: float | None) -> Colour:
    if confidence is None:
        return NO_CONFIDENCE[1]
    return next(
        (colour for least, _, colour in CONFIDENCE_COLOURS if confidence >= least), CONFIDENCE_COLOURS[-1][2]
    )


def _areas(page: Mapping[str, Any]) -> Iterator[tuple[str, Colour, Sequence[float]]]:
    """Label, colour and box of every region and table; a table whose cells are known says so."""
    for region in page.get("regions", ()):
        kind = str(region["kind"])
        yield kind.replace("_", " "), AREA_COLOURS.get(kind, LINE_COLOUR), region["box"]
    for table in page.get("tables", ()):
        yield "table with cells", AREA_COLOURS["table"], table["box"]


def _draw_areas(draw: ImageDraw.ImageDraw, sheet: _Sheet, page: Mapping[str, Any]) -> None:
    for _, colour, box in _areas(page):
        draw.rectangle(sheet.box(box), fill=(*colour, 28), outline=(*colour, 255), width=2 * sheet.stroke_px)


def _draw_lines(draw: ImageDraw.ImageDraw, sheet: _Sheet, lines: Sequence[Mapping[str, Any]]) -> None:
    for line in lines:
        draw.rectangle(sheet.box(line["box"]), outline=(*LINE_COLOUR, 160), width=1)
        for word in line.get("words", ()):
            colour = confidence_colour(word.get("confidence"))
            draw.rectangle(
                sheet.box(word["box"]), fill=(*colour, 45), outline=(*colour, 220), width=sheet.stroke_px
            )


def _draw_labels(draw: ImageDraw.ImageDraw, sheet: _Sheet, page: Mapping[str, Any]) -> None:
    """One label a kind and place: small areas of ink share the legend's word instead of hiding the page."""
    for label, colour, box in _areas(page):
        left, top, right, _ = sheet.box(box)
        ink = draw.textbbox((left, top), label, font=sheet.font)
        if label == "uncovered ink" and right - left < ink[2] - ink[0]:
            continue
        lift = min(top, ink[3] - top + sheet.stroke_px)
        draw.rectangle((ink[0], ink[1] - lift, ink[2], ink[3] - lift), fill=(*colour, 235))
        draw.text((left, top - lift), label, fill=(255, 255, 255, 255), font=sheet.font)


def _with_legend(drawn: Image.Image, sheet: _Sheet, page: Mapping[str, Any]) -> Image.Image:
    entries = list(_legend(page))
    font = sheet.font
    row_px = round(1.5 * font.getbbox("Ag")[3])
    width = max(drawn.width, *(round(font.getlength(text)) + 3 * row_px for _, text in entries))
    canvas = Image.new("RGB", (width, drawn.height + row_px * len(entries) + row_px // 2), "white")
    canvas.paste(drawn, (0, 0))
    draw = ImageDraw.Draw(canvas)
    draw.line((0, drawn.height, width, drawn.height), fill=(0, 0, 0), width=sheet.stroke_px)
    for number, (colour, text) in enumerate(entries):
        top = drawn.height + row_px // 4 + number * row_px
        if colour is not None:
            draw.rectangle((row_px // 3, top + row_px // 6, row_px, top + row_px * 5 // 6), fill=colour)
        draw.text((row_px * 4 // 3, top), text, fill=(0, 0, 0), font=font)
    return canvas


def _legend(page: Mapping[str, Any]) -> Iterator[tuple[Colour | None, str]]:
    """Only what the page shows, then what triage said."""
    confidences = [word.get("confidence") for line in page.get("lines", ()) for word in line.get("words", ())]
    colours = [confidence_colour(confidence) for confidence in confidences]
    for text, colour in [(text, colour) for _, text, colour in CONFIDENCE_COLOURS] + [NO_CONFIDENCE]:
        if colour in colours:
            yield colour, f"{text}: {colours.count(colour)}"
    for label in sorted({label for label, _, _ in _areas(page)}):
        found = [colour for name, colour, _ in _areas(page) if name == label]
        yield found[0], f"{label}: {len(found)}"
    triage = page.get("triage", {})
    yield None, "needs to be seen" if triage.get("escalate") else "needs no second look"
    for reason in triage.get("reasons", ()):
        yield None, f"  {reason['signal']}: {reason['measured']:g} (threshold {reason['threshold']:g})"
