"""A text layer is delivered only where characters, shapes and ink agree."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from PIL import Image, ImageDraw, ImageFont

from models.geometry import Box
from pipeline.ports import Glyph, PageRaster, TextLayer
from pipeline.text_layer import TextLayerVerdict, judge_text_layer

DPI = 144
PX_PER_PT = DPI / 72
WIDTH_PT, HEIGHT_PT = 400, 300
LINES = (
    "The keeper of the lighthouse wrote down",
    "every ship that passed before the fog came,",
    "and in the evening he lit the great lamp",
    "by hand, as his father had always done.",
)


@cache
def face(size_px: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size_px)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def paper() -> Image.Image:
    return Image.new("L", (int(WIDTH_PT * PX_PER_PT), int(HEIGHT_PT * PX_PER_PT)), 255)


def printed(
    image: Image.Image, text: str, left_px: int, top_px: int, *, size_px: int = 24, ink: int | None = 0
) -> list[Glyph]:
    """Draws ``text`` and returns its glyphs; ``ink`` None draws nothing."""
    font = face(size_px)
    glyphs: list[Glyph] = []
    x = float(left_px)
    for character in text:
        left, top, right, bottom = font.getbbox(character)
        box = Box(x + left, top_px + top, x + right, top_px + bottom).scaled(1 / PX_PER_PT)
        if ink is not None:
            ImageDraw.Draw(image).text((x, top_px), character, fill=ink, font=font)
        glyphs.append(
            Glyph(text=character, box=box, font_size_pt=size_px / PX_PER_PT, angle_deg=0, font_number=0)
        )
        x += font.getlength(character)
    return [*glyphs, Glyph(text="\n", box=Box(0, 0, 0, 0), font_size_pt=0, angle_deg=0, is_generated=True)]


def set_page(image: Image.Image, lines: Sequence[str] = LINES, *, ink: int | None = 0) -> list[Glyph]:
    return [g for n, line in enumerate(lines) for g in printed(image, line, 60, 60 + 40 * n, ink=ink)]


def judged(
    glyphs: Sequence[Glyph], image: Image.Image, *, images: Sequence[Box] = (), unmapped: float = 0.0
) -> TextLayerVerdict:
    layer = TextLayer(
        page_number=1,
        width_pt=image.width / PX_PER_PT,
        height_pt=image.height / PX_PER_PT,
        glyphs=tuple(glyphs),
        images=tuple(images),
        unmapped_glyph_share=unmapped,
    )
    return judge_text_layer(layer, PageRaster(page_number=1, image=image, dpi=DPI, px_per_pt=PX_PER_PT))


def texts(verdict: TextLayerVerdict) -> list[str]:
    return [line.text for line in verdict.lines]


def measured(verdict: TextLayerVerdict, name: str) -> float | None:
    return {signal.name: signal.measured for signal in verdict.signals}[f"text_layer_{name}"]


def whole_page(image: Image.Image) -> Box:
    return Box(0, 0, image.width / PX_PER_PT, image.height / PX_PER_PT)


def test_print_with_its_own_words_is_sound() -> None:
    image = paper()
    verdict = judged(set_page(image), image)
    assert verdict.is_sound
    assert texts(verdict) == list(LINES)
    assert verdict.rotation_deg == 0
    first = verdict.lines[0].words[0]
    assert first.confidence is None
    assert 55 < first.box.left < 65
    assert measured(verdict, "shape_agreement") == 1.0


def test_an_empty_layer_is_not_sound() -> None:
    verdict = judged([], paper())
    assert not verdict.is_sound
    assert verdict.failed == ("text_layer_letters",)


def shifted(text: str) -> str:
    return "".join(chr((ord(c) - 97 + 1) % 26 + 97) if c.islower() else c for c in text)


def shuffled(text: str) -> str:
    letters = list("abcdefghijklmnopqrstuvwxyz")
    random.Random(3).shuffle(letters)
    return "".join(letters[ord(c) - 97] if c.islower() else c for c in text)


def reversed_alphabet(text: str) -> str:
    return "".join(chr(219 - ord(c)) if c.islower() else c for c in text)


def signs(text: str) -> str:
    return "".join('=%)4"3/:;5(6$82!>*+'[ord(c) % 19] if c.isalpha() else c for c in text)


def private(text: str) -> str:
    return "".join(chr(0xE000 + ord(c)) if c.isalpha() else c for c in text)


@pytest.mark.parametrize("cipher", [shifted, shuffled, reversed_alphabet, signs, private])
def test_a_font_that_lies_is_not_sound(cipher: Callable[[str], str]) -> None:
    image = paper()
    glyphs = [replace(glyph, text=cipher(glyph.text)) for glyph in set_page(image)]
    assert not judged(glyphs, image).is_sound


@pytest.mark.parametrize(
    "lines",
    [
        ("Der Leuchtturmwärter schrieb jedes Schiff auf,", "bevor der Nebel über die Bucht gekommen ist."),
        ("Přítel z Brna krk prst vlk smrt čtvrt zmrzl,", "strč prst skrz krk byl jeho oblíbený vtip."),
        ("for (int i = 0; i < n; ++i) { sum += a[i]; }", "if (x && !y) return f(x, y); // done = true;"),
        ("THE HARBOUR OFFICE IS CLOSED ON FRIDAY", "PLEASE RING THE BELL AT THE SECOND DOOR"),
        ("12,400.00   8,312.75   -1,003.20   45%", "2019-04-17  19:30  +49 30 1234567  7/8"),
        ("Contents .............................. 3", "Appendix .............................. 41"),
        ("12",),
    ],
)
def test_sound_print_of_many_kinds(lines: Sequence[str]) -> None:
    image = paper()
    verdict = judged(set_page(image, lines), image)
    assert verdict.failed == ()


def test_glyphs_without_a_map_to_unicode_are_not_sound() -> None:
    image = paper()
    assert judged(set_page(image), image, unmapped=0.5).failed == ("text_layer_unmapped_share",)


@pytest.mark.parametrize("ink", [None, 255, 250])
def test_words_that_are_not_seen_are_dropped_alone(ink: int | None) -> None:
    image = paper()
    glyphs = set_page(image) + printed(image, "SUPERSEDED and void", 60, 400, ink=ink)
    verdict = judged(glyphs, image)
    assert verdict.is_sound
    assert texts(verdict) == list(LINES)
    assert (measured(verdict, "words_on_ink") or 1) < 1


def test_words_under_a_black_bar_are_dropped() -> None:
    image = paper()
    glyphs = set_page(image) + printed(image, "secret name", 60, 400)
    ImageDraw.Draw(image).rectangle((50, 390, 400, 440), fill=0)
    verdict = judged(glyphs, image)
    assert verdict.is_sound
    assert texts(verdict) == list(LINES)


def test_light_words_on_a_dark_band_are_kept() -> None:
    image = paper()
    ImageDraw.Draw(image).rectangle((0, 390, 800, 450), fill=30)
    glyphs = set_page(image) + printed(image, "White heading", 60, 400, ink=255)
    assert texts(judged(glyphs, image)) == [*LINES, "White heading"]


def test_a_scan_with_a_native_header_is_not_sound() -> None:
    image = paper()
    set_page(image)
    header = printed(image, "Extract of the register, sheet 1 of 4", 60, 10, size_px=16)
    verdict = judged(header, image, images=[whole_page(image)])
    assert set(verdict.failed) == {"text_layer_uncovered_text_share", "text_layer_uncovered_scan_share"}


def test_writing_by_hand_on_a_scan_counts_as_ink_without_words() -> None:
    image = paper()
    pen = ImageDraw.Draw(image)
    for row in range(4):
        points = [(60 + 9 * n, 120 + 80 * row + (n * 37 % 29)) for n in range(70)]
        for start in range(0, 70, 10):
            pen.line(points[start : start + 9], fill=0, width=4)
    header = printed(image, "Page 17", 60, 10, size_px=16)
    verdict = judged(header, image, images=[whole_page(image)])
    assert "text_layer_uncovered_scan_share" in verdict.failed


def test_rules_frames_and_a_photograph_are_no_text() -> None:
    image = paper()
    glyphs = set_page(image)
    pen = ImageDraw.Draw(image)
    pen.rectangle((20, 20, 780, 580), outline=0, width=3)
    for y in range(300, 420, 20):
        pen.line((60, y, 740, y), fill=0, width=2)
    noise = Image.effect_noise((300, 140), 80)
    image.paste(noise, (60, 430))
    photograph = Box(60, 430, 360, 570).scaled(1 / PX_PER_PT)
    assert judged(glyphs, image, images=[photograph]).failed == ()


def hidden(glyphs: Sequence[Glyph], *, dx: float = 0, dy: float = 0) -> list[Glyph]:
    return [
        replace(
            g,
            box=Box(g.box.left + dx, g.box.top + dy, g.box.right + dx, g.box.bottom + dy),
            is_painted=g.is_generated,
        )
        for g in glyphs
    ]


def test_a_hidden_layer_that_fits_its_scan_is_sound() -> None:
    image = paper()
    verdict = judged(hidden(set_page(image)), image, images=[whole_page(image)])
    assert verdict.failed == ()
    assert texts(verdict) == list(LINES)


def test_a_hidden_layer_of_another_page_is_not_sound() -> None:
    image = paper()
    set_page(image)
    other = ("If all goes well they shall be home", "by noon, though the tide has to turn", "first of all.")
    assert not judged(hidden(set_page(paper(), other)), image, images=[whole_page(image)]).is_sound


@pytest.mark.parametrize(("dx", "dy"), [(13, 0), (0, 10), (60, 40)])
def test_a_hidden_layer_out_of_place_is_not_sound(dx: float, dy: float) -> None:
    image = paper()
    glyphs = hidden(set_page(image), dx=dx, dy=dy)
    assert not judged(glyphs, image, images=[whole_page(image)]).is_sound


def test_a_hidden_layer_of_guesses_is_not_sound() -> None:
    image = paper()
    glyphs = [replace(g, text=shuffled(g.text)) for g in hidden(set_page(image))]
    assert not judged(glyphs, image, images=[whole_page(image)]).is_sound


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_of_turned_glyphs_comes_upright(turn: int) -> None:
    image = paper()
    glyphs = set_page(image)
    turned_image = image.rotate(-turn, expand=True)
    width, height = WIDTH_PT, HEIGHT_PT

    def placed(box: Box) -> Box:
        if turn == 90:
            return Box(height - box.bottom, box.left, height - box.top, box.right)
        if turn == 180:
            return Box(width - box.right, height - box.bottom, width - box.left, height - box.top)
        return Box(box.top, width - box.right, box.bottom, width - box.left)

    there = [replace(g, box=placed(g.box), angle_deg=float(turn)) for g in glyphs]
    verdict = judged(there, turned_image)
    assert verdict.failed == ()
    assert verdict.rotation_deg == 360 - turn
    assert texts(verdict) == list(LINES)
    straight = judged(glyphs, image)
    for one, two in zip(verdict.lines, straight.lines, strict=True):
        assert one.box.left == pytest.approx(two.box.left, abs=0.01)
        assert one.box.bottom == pytest.approx(two.box.bottom, abs=0.01)


def test_slanted_words_and_words_along_the_side_come_last_and_apart() -> None:
    image = paper()
    slanted = [replace(g, angle_deg=322.0) for g in printed(image, "COPY", 200, 500)]
    sideways = [replace(g, angle_deg=270.0) for g in printed(image, "X", 740, 300)]
    verdict = judged(slanted + sideways + set_page(image), image)
    assert texts(verdict) == [*LINES, "X", "COPY"]


def test_words_over_other_words_are_not_sound() -> None:
    image = paper()
    glyphs = set_page(image)
    overprint = [replace(g, text="o" if g.text.isalpha() else g.text) for g in glyphs]
    assert "text_layer_colliding_share" in judged(glyphs + overprint, image).failed


def test_a_shadow_is_read_once() -> None:
    image = paper()
    glyphs = set_page(image)
    shadow = [
        replace(g, box=Box(g.box.left + 1, g.box.top + 1, g.box.right + 1, g.box.bottom + 1)) for g in glyphs
    ]
    assert texts(judged(glyphs + shadow, image)) == list(LINES)


def test_a_raster_of_another_shape_is_not_trusted() -> None:
    image = paper()
    glyphs = set_page(image)
    layer = TextLayer(
        page_number=1,
        width_pt=WIDTH_PT,
        height_pt=HEIGHT_PT * 1.2,
        glyphs=tuple(glyphs),
        images=(),
        unmapped_glyph_share=0.0,
    )
    verdict = judge_text_layer(layer, PageRaster(page_number=1, image=image, dpi=DPI))
    assert "text_layer_frame_error" in verdict.failed


def test_ligatures_bullets_and_replacement_characters_are_cleaned() -> None:
    image = paper()
    glyphs = [*set_page(image, ["The oYce of the lighthouse keeper", "B one"]), *set_page(paper(), [])]
    named = {"Y": "ﬃ", "B": "\uf0b7"}
    renamed = [replace(g, text=named.get(g.text, g.text)) for g in glyphs]
    assert texts(judged(renamed, image)) == ["The oﬃce of the lighthouse keeper".replace("ﬃ", "ffi"), "• one"]
