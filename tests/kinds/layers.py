"""Text layers that hold less, or more, than the page says: stamped scans, hidden layers, watermarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pikepdf import Array, Dictionary, Name, Pdf, String
from PIL import Image, ImageChops, ImageDraw
from reportlab.pdfgen.canvas import Canvas

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import (
    A4_PT,
    drawn_pdf,
    embedded,
    helvetica,
    pasted,
    printed,
    raw_pdf,
    shown,
    typeface,
    written_image,
)

SHEET_PX = (1240, 1754)
DEED = (
    "Extract from the water register",
    "The owner of the mill may open the upper gate for",
    "six hours on each working day from April to June.",
    "Repairs to the weir are shared between both banks,",
    "and the last of them was carried out by a mason from",
    "the next valley. No other right is entered here.",
)
HEADER = (
    "Archive of the northern district - electronic copy - reference WR-5518-0092 - sheet 3 of 8",
    "This copy was made by the automatic service and is valid without a signature. Check code 9Q4T-11B7-X0.",
)
FOOTER = (
    "Fee item 12 was charged. Copies for trade need the written consent of the keeper of the register.",
)
STAMPS: dict[str, Callable[[Canvas], None]] = {
    "header_and_footer": lambda canvas: (
        printed(canvas, HEADER, top_pt=815, left_pt=50, size_pt=7.5, leading_pt=12),
        printed(canvas, FOOTER, top_pt=25, left_pt=50, size_pt=7.5),
    ),
    "long_header": lambda canvas: printed(
        canvas, [*HEADER, *FOOTER, *HEADER, *FOOTER], top_pt=825, left_pt=50, size_pt=7.5, leading_pt=11
    ),
    "bates_number": lambda canvas: printed(
        canvas, ["NORTH-VALLEY 0004417"], top_pt=22, left_pt=440, size_pt=9, face="Helvetica-Bold"
    ),
    "page_number": lambda canvas: printed(canvas, ["Page 17 of 92"], top_pt=30, left_pt=270, size_pt=9),
    "side_margin": lambda canvas: _sideways(canvas, HEADER),
}


def stamped_scans() -> Iterator[Cousin]:
    """Native words in the margins of a scan do not account for the ink of its body."""
    for name, stamp in STAMPS.items():
        yield _stamped_scan(name, stamp)
    yield _scan_in_strips()
    yield _clipping_between_lines()


def _sideways(canvas: Canvas, lines: Sequence[str]) -> None:
    canvas.saveState()
    canvas.translate(585, 60)
    canvas.rotate(90)
    printed(canvas, lines, left_pt=0, top_pt=8, size_pt=7, leading_pt=9)
    canvas.restoreState()


def _stamped_scan(name: str, stamp: Callable[[Canvas], None]) -> Cousin:
    def draw(canvas: Canvas) -> None:
        pasted(canvas, written_image(DEED, size_px=SHEET_PX, top_px=300))
        stamp(canvas)

    must = DEED
    if name in ("header_and_footer", "long_header"):
        must = (*must, "reference WR-5518-0092", "Check code 9Q4T-11B7-X0", "Fee item 12 was charged")
    expected = Expected(must=must, edit_share=0.06)
    return Cousin(
        name=f"scan_with_{name}", suffix=".pdf", write=lambda path: drawn_pdf(path, draw), expected=expected
    )


def _scan_in_strips() -> Cousin:
    """The scan is cut into bands, as many scanners do: no single image covers the page."""

    def draw(canvas: Canvas) -> None:
        scan = written_image(DEED, size_px=(1240, 1760), top_px=300)
        for number in range(8):
            strip = scan.crop((0, number * 220, 1240, number * 220 + 220))
            pasted(canvas, strip, box_pt=(0, 842 * (7 - number) / 8, 595, 842 / 8))
        STAMPS["header_and_footer"](canvas)

    return Cousin(
        name="scan_in_strips",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=(*DEED, "reference WR-5518-0092"), edit_share=0.06),
    )


def _clipping_between_lines() -> Cousin:
    """Half a page of native print and a pasted picture of more print."""
    letter = (
        "Dear neighbours of the mill,",
        "please find below what the register says about the gate.",
        "I ask you to come to the meeting on the second of July.",
    )

    def draw(canvas: Canvas) -> None:
        printed(canvas, letter)
        pasted(canvas, written_image(DEED, size_px=(1100, 620), left_px=60), box_pt=(40, 300, 528, 297.6))

    return Cousin(
        name="clipping_in_a_letter",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=(*letter, *DEED), edit_share=0.06),
    )


ORDER = (
    "Order 9143 of the village hall",
    "Two folding tables, painted white, and one ladder",
    "are wanted on the stage by Thursday evening.",
    "The agreed price is 64.80 with the transport.",
)
WITHDRAWN = ("WITHDRAWN VERSION", "NOT FOR USE")


def hidden_layers() -> Iterator[Cousin]:
    """Words of an optional-content group that is off in the default view are not on the page."""
    for name in ("listed_as_off", "base_state_off", "membership", "inner_of_two", "form_object"):
        yield _hidden(name)
    yield _shown_layer()


def _hidden(name: str) -> Cousin:
    ghost = shown(WITHDRAWN, top_pt=560, size_pt=30, leading_pt=44)
    between = {
        "form_object": b"/X0 Do\n",
        "inner_of_two": b"/OC /M1 BDC " + shown(["Seen by the keeper of keys."], top_pt=620) + b"/OC /M0 BDC "
        b"" + ghost + b"EMC EMC\n",
    }.get(name, b"/OC /M0 BDC " + ghost + b"EMC\n")

    def add_groups(pdf: Pdf) -> None:
        off, on = (
            pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String(label)))
            for label in ("Old version", "Notes")
        )
        view = Dictionary(Order=Array([off, on]), OFF=Array([off]))
        if name == "base_state_off":
            view = Dictionary(Order=Array([off, on]), BaseState=Name.OFF, ON=Array([on]))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([off, on]), D=view)
        membership = Dictionary(Type=Name.OCMD, OCGs=Array([off]), P=Name.AllOn)
        resources = pdf.pages[0].Resources
        resources.Properties = Dictionary(M0=membership if name == "membership" else off, M1=on)
        if name == "form_object":
            form = pdf.make_stream(
                ghost,
                Type=Name.XObject,
                Subtype=Name.Form,
                BBox=Array([0, 0, 595, 842]),
                OC=off,
                Resources=Dictionary(Font=Dictionary(F=helvetica())),
            )
            resources.XObject = Dictionary(X0=form)

    expected = Expected(
        must=(*ORDER, *(["Seen by the keeper of keys."] if name == "inner_of_two" else [])),
        must_not=("WITHDRAWN", "NOT FOR USE"),
    )
    return Cousin(
        name=f"layer_off_{name}",
        suffix=".pdf",
        write=lambda path: raw_pdf(path, shown(ORDER) + between, change=add_groups),
        expected=expected,
    )


def _shown_layer() -> Cousin:
    """The same group switched on is on the page."""

    def add_groups(pdf: Pdf) -> None:
        group = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String("Remarks")))
        pdf.Root.OCProperties = Dictionary(
            OCGs=Array([group]), D=Dictionary(Order=Array([group]), ON=Array([group]))
        )
        pdf.pages[0].Resources.Properties = Dictionary(M0=group)

    content = (
        shown(ORDER) + b"/OC /M0 BDC " + shown(["Bring the long ladder, please."], top_pt=600) + b"EMC\n"
    )
    return Cousin(
        name="layer_on",
        suffix=".pdf",
        write=lambda path: raw_pdf(path, content, change=add_groups),
        expected=Expected(must=(*ORDER, "Bring the long ladder, please.")),
    )


LEASE = tuple(
    f"{number}. {sentence}"
    for number, sentence in enumerate(
        (
            "The tenant of the allotment keeps the hedge below one metre.",
            "Water is drawn from the common pump and never stored in tubs.",
            "Fires are lit on Fridays only and are put out before dark.",
            "A hut may be as large as four doors laid side by side.",
            "Dogs stay on the lead between the first gate and the last.",
            "The committee inspects every plot in the week after Easter.",
            "Whoever leaves hands back both keys and a plot without weeds.",
            "These terms hold until the next general meeting changes them.",
        ),
        1,
    )
)


def watermarks() -> Iterator[Cousin]:
    """Letters that lie across the page stay out of its sentences."""
    for angle in (30, 45, 60, -45):
        yield _watermarked(f"watermark_{angle}".replace("-", "minus_"), angle)
    yield _watermarked("watermark_very_large", 52, size_pt=120)
    yield _watermarked("watermark_letter_by_letter", 40, is_scattered=True)
    yield _watermarked("watermark_on_top", 45, is_on_top=True)
    yield _watermarked("watermark_level", 0, size_pt=80)
    yield _beside()
    yield _watermarked_scan()


def _watermarked(
    name: str, angle: int, *, size_pt: float = 64, is_scattered: bool = False, is_on_top: bool = False
) -> Cousin:
    def mark(canvas: Canvas) -> None:
        canvas.saveState()
        canvas.setFillGray(0.8)
        canvas.setFillAlpha(0.6)
        canvas.setFont(embedded("DejaVuSans-Bold"), size_pt)
        canvas.translate(300, 655)
        canvas.rotate(angle)
        if is_scattered:
            for number, letter in enumerate("SPECIMEN"):
                canvas.drawString(-220 + number * 58, -22, letter)
        else:
            canvas.drawCentredString(0, -size_pt / 3, "SPECIMEN")
        canvas.restoreState()

    def draw(canvas: Canvas) -> None:
        if not is_on_top:
            mark(canvas)
        printed(canvas, LEASE, size_pt=12.5, top_pt=745)
        if is_on_top:
            mark(canvas)

    return Cousin(
        name=name,
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=LEASE, order=LEASE[:1] + LEASE[-1:], edit_share=0.04),
    )


def _beside() -> Cousin:
    """A reference up the left margin, as preprint servers set it."""

    def draw(canvas: Canvas) -> None:
        printed(canvas, LEASE, size_pt=12.5)
        canvas.saveState()
        canvas.translate(38, 480)
        canvas.rotate(90)
        printed(canvas, ["plots:2311.04417v2 [garden.law] 9 Nov"], left_pt=0, top_pt=0, size_pt=18)
        canvas.restoreState()

    return Cousin(
        name="reference_up_the_margin",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw),
        expected=Expected(must=LEASE, order=LEASE, edit_share=0.04),
    )


def _watermarked_scan() -> Cousin:
    def draw(canvas: Canvas) -> None:
        mark = Image.new("L", (1400, 260), 255)
        ImageDraw.Draw(mark).text((20, 20), "SPECIMEN", fill=205, font=typeface(190, "DejaVuSans-Bold"))
        mark = mark.rotate(38, fillcolor=255, expand=True)
        ground = Image.new("L", SHEET_PX, 255)
        ground.paste(mark, (20, -80))
        page = written_image(LEASE, size_px=SHEET_PX, font_px=26, leading_px=60)
        pasted(canvas, ImageChops.darker(page, ground))

    return Cousin(
        name="watermark_in_a_scan",
        suffix=".pdf",
        write=lambda path: drawn_pdf(path, draw, size_pt=A4_PT),
        expected=Expected(must=LEASE, edit_share=0.06),
    )
