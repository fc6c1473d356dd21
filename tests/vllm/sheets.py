"""Pages that OCR reads well, and what stands on them: prose in several sizes, and a ruled table."""

from __future__ import annotations

from typing import Final

from PIL import Image, ImageDraw, ImageFont

LINES: Final = (
    "The ferry leaves the harbour at nine and returns before dark.",
    "Passengers with bicycles wait beside the yellow gate until called.",
    "Children under seven travel free when accompanied by an adult.",
    "Dogs must be kept on a short lead throughout the crossing.",
    "Hot meals are served in the upper saloon from half past eleven.",
    "In stormy weather the captain may cancel any sailing without notice.",
    "Lost property can be collected from the office near the lighthouse.",
    "Season tickets are sold every Monday between eight and twelve.",
)
PROSE: Final = "\n\n".join(LINES)

SHEETS: Final = (
    ((1654, 2339), 40),
    ((1700, 2200), 31),
    ((2339, 1654), 25),
    ((1654, 2100), 18),
)
"""Sizes in pixels, and the size of the type: the smaller it is, the larger the page is sent."""

CELLS: Final = (
    ("Sailing", "Harbour", "Island", "Bicycles", "Fare"),
    ("Morning", "09:15", "10:40", "twelve", "14.50"),
    ("Midday", "12:30", "13:55", "twenty", "16.20"),
    ("Evening", "18:45", "20:10", "eight", "14.50"),
    ("Night", "22:05", "23:30", "none", "19.80"),
    ("Special", "07:20", "08:45", "thirty", "11.75"),
)
TABLE: Final = (
    "<table>"
    + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in CELLS)
    + "</table>"
)


def sheet(size_px: tuple[int, int], type_px: int) -> Image.Image:
    """It ends in its lower right corner, so that hardly any of it is margin."""
    image = Image.new("L", size_px, 255)
    font, draw = ImageFont.load_default(type_px), ImageDraw.Draw(image)
    for row, line in enumerate(LINES):
        draw.text((100, 120 + row * type_px * 1.8), line, fill=0, font=font)
    draw.text((image.width - 80, image.height - 60), "end", fill=0, font=font, anchor="rb")
    return image


def ruled_table() -> Image.Image:
    image, (left, top, width, height) = Image.new("L", (1654, 1200), 255), (150, 150, 260, 90)
    font, draw = ImageFont.load_default(36), ImageDraw.Draw(image)
    for row, cells in enumerate(CELLS):
        for column, cell in enumerate(cells):
            x, y = left + column * width, top + row * height
            draw.rectangle((x, y, x + width, y + height), outline=0, width=3)
            draw.text((x + 20, y + 22), cell, fill=0, font=font)
    return image
