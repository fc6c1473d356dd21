"""Filled forms: what was typed, ticked or chosen belongs to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pikepdf import Array, Dictionary, Name, Object, Pdf, String

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import helvetica, raw_pdf, shown

LABELS = (
    "Request for a berth",
    "Name of the boat:",
    "Length in metres:",
    "Home port:",
    "Night lamp wanted:",
    "Mooring:",
)
SMALL_PRINT = ("The fee is due on arrival and covers water for one week.",)
TICKS = ("☑", "☒", "✓", "✔", "✗", "✘", "■", "[x]", "[X]", "Yes", "checked", "●", "◉", "(x)", "(X)")
Fields = Callable[[Pdf], list[Object]]


def filled_forms() -> Iterator[Cousin]:
    """With appearance streams, and without (the viewer is told to draw them)."""
    texts = {"boat": "Grey Heron of Lund", "length": "11.75", "port": "Saltholm"}
    for drawn in (True, False):
        how = "drawn" if drawn else "undrawn"
        yield _form(
            f"text_fields_{how}",
            lambda pdf, drawn=drawn: _texts(pdf, texts, drawn=drawn),
            tuple(texts.values()),
        )
        yield _form(
            f"choice_field_{how}",
            lambda pdf, drawn=drawn: [
                *_texts(pdf, texts, drawn=drawn),
                _choice(pdf, "Inner quay", ["Outer quay", "Inner quay", "Buoy"], drawn=drawn),
            ],
            ("Grey Heron of Lund", "Inner quay"),
            unwanted=("Outer quay", "Buoy"),
        )
        yield _form(
            f"tall_text_field_{how}",
            lambda pdf, drawn=drawn: [_tall(pdf, drawn=drawn)],
            ("arriving after dark",),
        )
        yield _form(
            f"value_of_the_parent_{how}",
            lambda pdf, drawn=drawn: _inherited(pdf, drawn=drawn),
            ("Two Sisters",),
        )
        yield _form(
            f"accents_{how}",
            lambda pdf, drawn=drawn: _texts(pdf, {"boat": "Möwe Émilie"}, drawn=drawn),
            ("Möwe Émilie",),
        )
    yield _form("tick_box", lambda pdf: [_tick(pdf, "lamp", is_on=True)], (), ticks=True)
    yield _form("radio_buttons", _radio, (), ticks=True)
    yield _form("tick_box_left_empty", lambda pdf: [_tick(pdf, "lamp", is_on=False)], (), unwanted=TICKS)
    yield _form("hidden_field", _hidden, ("Grey Heron of Lund",), unwanted=("Office copy only",))
    yield _form("note_of_a_typewriter", _free_text, ("Berth given: number 38",))


def _form(
    name: str, fields: Fields, values: tuple[str, ...], *, unwanted: tuple[str, ...] = (), ticks: bool = False
) -> Cousin:
    content = shown(LABELS, leading_pt=44, size_pt=13) + shown(SMALL_PRINT, top_pt=460, size_pt=10)

    def add_fields(pdf: Pdf) -> None:
        widgets = fields(pdf)
        drawn = [kid for widget in widgets for kid in (widget.get("/Kids") or [widget])]
        is_undrawn = any("/AP" not in widget for widget in drawn)
        pdf.Root.AcroForm = pdf.make_indirect(
            Dictionary(
                Fields=Array([widget for widget in widgets if "/FT" in widget]),
                DR=Dictionary(Font=Dictionary(F=helvetica())),
                DA=String("/F 12 Tf 0 g"),
                NeedAppearances=is_undrawn,
            )
        )
        for widget in drawn:
            widget["/P"] = pdf.pages[0].obj
        pdf.pages[0].obj["/Annots"] = Array(drawn)

    expected = Expected(
        must=(*LABELS, *SMALL_PRINT, *values),
        must_not=unwanted,
        any_of=(TICKS,) if ticks else (),
        edit_share=0.0,
    )
    return Cousin(
        name=f"form_{name}",
        suffix=".pdf",
        write=lambda path: raw_pdf(path, content, change=add_fields),
        expected=expected,
    )


def _texts(pdf: Pdf, values: dict[str, str], *, drawn: bool) -> list[Object]:
    rows_pt = {"boat": 712, "length": 668, "port": 624}
    return [
        _widget(
            pdf,
            (240, rows_pt[key], 500, rows_pt[key] + 20),
            value,
            drawn=drawn,
            FT=Name.Tx,
            T=String(key),
            V=String(value),
        )
        for key, value in values.items()
    ]


def _choice(pdf: Pdf, value: str, options: Sequence[str], *, drawn: bool) -> Object:
    return _widget(
        pdf,
        (240, 536, 500, 556),
        value,
        drawn=drawn,
        FT=Name.Ch,
        T=String("mooring"),
        V=String(value),
        Opt=Array([String(option) for option in options]),
        Ff=1 << 17,
    )


def _tall(pdf: Pdf, *, drawn: bool) -> Object:
    lines = ("We are two adults and a child,", "arriving after dark.")
    return _widget(
        pdf,
        (240, 660, 500, 732),
        lines,
        drawn=drawn,
        FT=Name.Tx,
        T=String("remarks"),
        V=String("\r".join(lines)),
        Ff=1 << 12,
    )


def _inherited(pdf: Pdf, *, drawn: bool) -> list[Object]:
    """One field shown in two places: type and value stand in the parent alone."""
    kids = [
        _widget(pdf, (240, bottom, 500, bottom + 20), "Two Sisters", drawn=drawn) for bottom in (712, 500)
    ]
    parent = pdf.make_indirect(
        Dictionary(
            FT=Name.Tx, T=String("boat"), V=String("Two Sisters"), DA=String("/F 12 Tf 0 g"), Kids=Array(kids)
        )
    )
    for kid in kids:
        kid["/Parent"] = parent
    return [parent]


def _widget(
    pdf: Pdf,
    rect: tuple[float, float, float, float],
    value: str | Sequence[str],
    *,
    drawn: bool,
    **entries: object,
) -> Object:
    widget = Dictionary(
        Type=Name.Annot, Subtype=Name.Widget, Rect=Array(rect), F=4, DA=String("/F 12 Tf 0 g"), **entries
    )
    if drawn:
        lines = [value] if isinstance(value, str) else value
        height = rect[3] - rect[1]
        content = (
            b"/Tx BMC q " + shown(lines, left_pt=2, top_pt=height - 14, size_pt=12, leading_pt=16) + b"Q EMC"
        )
        widget.AP = Dictionary(N=_appearance(pdf, content, rect))
    return pdf.make_indirect(widget)


def _appearance(pdf: Pdf, content: bytes, rect: tuple[float, float, float, float]) -> Object:
    return pdf.make_stream(
        content,
        Type=Name.XObject,
        Subtype=Name.Form,
        BBox=Array([0, 0, rect[2] - rect[0], rect[3] - rect[1]]),
        Resources=Dictionary(
            Font=Dictionary(
                F=helvetica(), Z=Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.ZapfDingbats)
            )
        ),
    )


def _marked(
    pdf: Pdf, rect: tuple[float, float, float, float], mark: bytes, on: Name, *, is_on: bool
) -> Dictionary:
    """A button's two appearances: a frame, and the frame with ``mark`` (of Zapf Dingbats) in it."""
    frame = b"q 0.5 0.5 15 15 re S Q "
    return Dictionary(
        Type=Name.Annot,
        Subtype=Name.Widget,
        Rect=Array(rect),
        F=4,
        AS=on if is_on else Name.Off,
        AP=Dictionary(
            N=Dictionary(
                {
                    str(on): _appearance(pdf, frame + b"BT /Z 14 Tf 2.5 3 Td (" + mark + b") Tj ET", rect),
                    "/Off": _appearance(pdf, frame, rect),
                }
            )
        ),
    )


def _tick(pdf: Pdf, name: str, *, is_on: bool) -> Object:
    button = _marked(pdf, (240, 582, 256, 598), b"4", Name.Lit, is_on=is_on)
    button.FT, button.T, button.V = Name.Btn, String(name), Name.Lit if is_on else Name.Off
    return pdf.make_indirect(button)


def _radio(pdf: Pdf) -> list[Object]:
    kids = [
        pdf.make_indirect(
            _marked(
                pdf,
                (240 + 60 * place, 538, 256 + 60 * place, 554),
                b"l",
                Name(f"/Quay{place}"),
                is_on=place == 1,
            )
        )
        for place in range(3)
    ]
    parent = pdf.make_indirect(
        Dictionary(FT=Name.Btn, Ff=1 << 15, T=String("mooring"), V=Name("/Quay1"), Kids=Array(kids))
    )
    for kid in kids:
        kid["/Parent"] = parent
    return [parent]


def _hidden(pdf: Pdf) -> list[Object]:
    """A field with the hidden flag is on no page."""
    (boat,) = _texts(pdf, {"boat": "Grey Heron of Lund"}, drawn=True)
    (office,) = _texts(pdf, {"port": "Office copy only"}, drawn=True)
    office["/F"] = 2
    return [boat, office]


def _free_text(pdf: Pdf) -> list[Object]:
    """Not a field but an annotation, as a viewer's typewriter tool leaves it."""
    rect = (240, 500, 500, 520)
    note = _widget(pdf, rect, "Berth given: number 38", drawn=True, Contents=String("Berth given: number 38"))
    note["/Subtype"] = Name.FreeText
    return [note]
