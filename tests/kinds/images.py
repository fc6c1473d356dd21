"""Images that lie about their resolution, or whose samples, tones or proportions are unusual."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, TiffImagePlugin

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import encoded, write_lines, written_image

PARCEL = (
    "Parcel slip 40866 of the lower depot",
    "Four crates of lamp glass and one sack of cement",
    "were left at the side gate on the ninth of May.",
    "The porter signed for all five pieces.",
)
SCALE = (
    "Test sheet for thermometer no. 12",
    "The bulb was held in melting ice for ten minutes",
    "and the column stood at 0.4 degrees each time.",
    "The instrument may be used until next spring.",
)
BANDS = (
    ("RULES FOR THE READING ROOM", "Coats are left at the door and pens are not allowed."),
    ("BORROWING AND RETURN", "A volume may be kept for 14 days and renewed once."),
    ("LOST OR DAMAGED BOOKS", "The borrower pays for a new copy within a month."),
)


def wrong_resolutions() -> Iterator[Cousin]:
    """A normal page at 150 dpi whose file says something else, or nothing."""
    for suffix, claims in {
        ".tif": [(0, 0), (1, 1), (3, 3), (10_000, 10_000), (72, 1), None],
        ".png": [(0, 0), (1, 1), (3, 3), (10_000, 10_000), (300, 2)],
        ".jpg": [(0, 0), (1, 1), (3, 3), (10_000, 10_000), (1, 600)],
    }.items():
        for claim in claims:
            yield _claiming(suffix, claim)
    yield _parcel("tiff_zero_over_zero", ".tif", _write_zero_over_zero)
    yield _parcel("tiff_without_a_unit", ".tif", _write_without_unit)
    yield _fax()


def deep_samples() -> Iterator[Cousin]:
    """Sixteen bits a sample and more, whose values fill only a part of the range."""
    ranges = {
        "wide": (3_000, 61_000),
        "low": (180, 900),
        "high": (52_000, 64_000),
        "middle": (30_000, 33_500),
    }
    for name, (ink, paper) in ranges.items():
        for suffix in (".tif", ".png"):
            yield _deep(f"{name}_{suffix[1:]}", suffix, _spread(ink, paper, np.uint16))
    yield _deep("big_endian", ".tif", _spread(3_000, 61_000, ">u2"))
    yield _deep("thirty_two_bits", ".tif", _spread(3_000, 61_000, np.int32))
    yield _deep("floating_point", ".tif", _spread(0, 1, np.float32))
    yield _deep("white_is_zero", ".tif", _spread(61_000, 3_000, np.uint16), is_white_zero=True)
    yield _deep_blank("even", np.zeros((800, 1100)))
    yield _deep_blank("grainy", np.random.default_rng(4).normal(0, 40, (800, 1100)))


def white_on_dark() -> Iterator[Cousin]:
    """Headings in white on bars of black or a strong colour."""
    for name, bar in {
        "black": (0, 0, 0),
        "dark_blue": (16, 32, 110),
        "dark_red": (130, 12, 20),
        "green": (0, 96, 60),
        "grey": (95, 95, 95),
    }.items():
        yield _banded(name, bar)
    yield _banded("black_one_bit", (0, 0, 0), mode="1")
    yield _all_inverted()


def long_strips() -> Iterator[Cousin]:
    """Till rolls and time lines: nothing is lost to shrinking or at a seam."""
    for width_px, count in ((400, 140), (330, 150)):
        yield _till_roll(width_px, count)
    yield _till_roll(420, 140, mode="RGB", suffix=".jpg")
    yield _time_line()


def _claiming(suffix: str, claim: tuple[int, int] | None) -> Cousin:
    def write(path: Path) -> None:
        image = _parcel_page()
        if suffix == ".jpg":
            path.write_bytes(_with_jfif_density(encoded(image, "JPEG", quality=85), claim or (0, 0)))
        else:
            image.save(path, **({} if claim is None else {"dpi": claim}))

    name = "nothing" if claim is None else "_".join(map(str, dict.fromkeys(claim)))
    return _parcel(f"{suffix[1:]}_says_{name}_dpi", suffix, write)


def _parcel(name: str, suffix: str, write) -> Cousin:
    expected = Expected(must=PARCEL, order=(), edit_share=0.08, not_routes=frozenset({"blank"}))
    return Cousin(name=name, suffix=suffix, write=write, expected=expected)


def _parcel_page() -> Image.Image:
    return written_image(PARCEL, size_px=(1240, 800))


def _with_jfif_density(jpeg: bytes, density: tuple[int, int]) -> bytes:
    """The JFIF header's unit set to dots an inch, and its densities."""
    at = jpeg.index(b"JFIF\0") + 7
    return jpeg[:at] + struct.pack(">BHH", 1, *density) + jpeg[at + 5 :]


def _write_zero_over_zero(path: Path) -> None:
    """Both rationals 0/0: no number at all."""
    image = _parcel_page().convert("1")
    image.save(path, dpi=(77, 77))
    content = path.read_bytes()
    rational = struct.pack("<II", 77, 1)
    assert content.count(rational) in (1, 2)
    path.write_bytes(content.replace(rational, bytes(8)))


def _write_without_unit(path: Path) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[TiffImagePlugin.RESOLUTION_UNIT] = 1
    tags[TiffImagePlugin.X_RESOLUTION] = 1.0
    tags[TiffImagePlugin.Y_RESOLUTION] = 1.0
    _parcel_page().save(path, tiffinfo=tags)


def _fax() -> Cousin:
    """Group 4 at 204 by 98 dpi: honest, but a pixel is twice as high as wide."""

    def write(path: Path) -> None:
        page = written_image(PARCEL, size_px=(1728, 1120), font_px=40, left_px=150)
        page.resize((1728, 538), Image.Resampling.LANCZOS).convert("1", dither=Image.Dither.NONE).save(
            path, compression="group4", dpi=(204, 98)
        )

    return _parcel("fax_204_by_98_dpi", ".tif", write)


def _spread(ink: float, paper: float, kind) -> np.ndarray:
    grey = np.asarray(written_image(SCALE, size_px=(1240, 760)), dtype=float) / 255
    return (ink + grey * (paper - ink)).astype(kind)


def _deep(name: str, suffix: str, samples: np.ndarray, *, is_white_zero: bool = False) -> Cousin:
    def write(path: Path) -> None:
        image = Image.fromarray(samples)
        tags = {TiffImagePlugin.PHOTOMETRIC_INTERPRETATION: 0} if is_white_zero else {}
        image.save(path, dpi=(150, 150), **({"tiffinfo": tags} if tags else {}))

    expected = Expected(must=SCALE, edit_share=0.08, not_routes=frozenset({"blank"}))
    return Cousin(name=f"deep_{name}", suffix=suffix, write=write, expected=expected)


def _deep_blank(name: str, noise: np.ndarray) -> Cousin:
    """An empty sheet: stretching its few tones would print dirt all over it."""

    def write(path: Path) -> None:
        Image.fromarray((58_000 + noise).astype(np.uint16)).save(path, dpi=(150, 150))

    expected = Expected(routes=frozenset({"blank"}), longest_text=0)
    return Cousin(name=f"deep_blank_{name}", suffix=".png", write=write, expected=expected)


def _banded(name: str, bar: tuple[int, int, int], *, mode: str = "RGB") -> Cousin:
    def write(path: Path) -> None:
        page = Image.new("RGB", (1400, 900), "white")
        for number, (heading, body) in enumerate(BANDS):
            top_px = 90 + number * 250
            page.paste(bar, (110, top_px, 1290, top_px + 62))
            spot = {"left_px": 140, "leading_px": 50}
            write_lines(
                page,
                [heading],
                font_px=32,
                top_px=top_px + 12,
                ink=(255, 255, 255),
                face="DejaVuSans-Bold",
                **spot,
            )
            write_lines(page, [body], font_px=28, top_px=top_px + 90, ink=(0, 0, 0), **spot)
        page.convert(mode).save(path, dpi=(170, 170))

    headings, bodies = zip(*BANDS, strict=True)
    expected = Expected(must=(*headings, *bodies), edit_share=0.08)
    return Cousin(name=f"bands_{name}", suffix=".png", write=write, expected=expected)


def _all_inverted() -> Cousin:
    """A whole page in white on black, as a microfilm reader gives it."""

    def write(path: Path) -> None:
        written_image(SCALE, size_px=(1240, 760), ink=235, paper=18).save(path, dpi=(150, 150))

    return Cousin(
        name="white_on_black_page", suffix=".png", write=write, expected=Expected(must=SCALE, edit_share=0.08)
    )


GOODS = ("oat flakes", "red lentils", "candles", "apple juice", "soap", "matches", "rye bread", "cheese")


def _till_roll(width_px: int, count: int, *, mode: str = "L", suffix: str = ".png") -> Cousin:
    lines = [f"{100 + number} {GOODS[number % len(GOODS)]}" for number in range(1, count + 1)]
    ends = ("CORNER SHOP EAST", "slip 55102"), ("TOTAL 873.45", "THANK YOU AND GOODBYE")

    def write(path: Path) -> None:
        image = Image.new("L", (width_px, 44 * (count + 6)), 255)
        write_lines(
            image,
            [*ends[0], *lines, *ends[1]],
            font_px=22,
            left_px=18,
            top_px=60,
            leading_px=44,
            face="DejaVuSansMono",
        )
        image.convert(mode).save(path)

    pattern = r"\b(?:10[1-9]|1[1-9]\d|2[0-4]\d|250)[ .,:|]+[a-z]"
    expected = Expected(
        must=(*ends[0], *ends[1]),
        edit_share=0.1,
        at_least=(pattern, count * 95 // 100),
        order=(ends[0][1][:4],),
    )
    return Cousin(name=f"till_roll_{width_px}_{suffix[1:]}", suffix=suffix, write=write, expected=expected)


def _time_line() -> Cousin:
    """A band of 6,600 by 330 pixels that is read from left to right."""
    cells = [f"Stage {number}: kilometre {number * 13}" for number in range(1, 17)]

    def write(path: Path) -> None:
        image = Image.new("L", (6_600, 330), 255)
        write_lines(
            image, ["The mountain railway from end to end"], font_px=34, left_px=60, top_px=40, leading_px=60
        )
        for number, cell in enumerate(cells):
            write_lines(image, [cell], font_px=26, left_px=60 + number * 405, top_px=180, leading_px=40)
        image.save(path)

    expected = Expected(
        must=("The mountain railway from end to end",),
        edit_share=0.08,
        at_least=(r"(?i)stage ?\d+: ?kilometre \d+", 14),
    )
    return Cousin(name="time_line_20_to_1", suffix=".png", write=write, expected=expected)
