"""Tesseract's TSV rows."""

from __future__ import annotations

from models.geometry import Box
from pipeline.engines.tesseract_tsv import lines_from_tsv

HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"


def row(place: str, box: str, confidence: str, text: str) -> str:
    return "\t".join(("5\t1", *place.split(), *box.split(), confidence, text))


def test_words_become_lines_with_paragraphs_counted_through_the_page() -> None:
    tsv = "\n".join(
        (
            HEAD,
            "4\t1\t1\t1\t1\t0\t10\t10\t200\t20\t-1\t",
            row("1 1 1 1", "10 10 50 20", "96.5", "First"),
            row("1 1 1 2", "70 12 50 18", "80", "line"),
            row("1 1 2 1", "10 40 50 20", "90", "second"),
            row("1 2 1 1", "10 80 50 20", "90", "third"),
            row("2 1 1 1", "10 120 50 20", "90", "fourth"),
            "",
        )
    )
    lines = lines_from_tsv(tsv)
    assert [(line.text, line.paragraph_number) for line in lines] == [
        ("First line", 1),
        ("second", 1),
        ("third", 2),
        ("fourth", 3),
    ]
    assert lines[0].words[0].box == Box(10, 10, 60, 30)
    assert lines[0].words[0].confidence == 0.965


def test_odd_rows_cost_no_word_of_their_neighbours() -> None:
    tsv = "\n".join(
        (
            HEAD,
            row("1 1 1 1", "10 10 50 20", "95", 'quote" and\ttab'),
            row("1 1 1 2", "70 10 50 20", "95", "  "),
            row("1 1 1 3", "70 10 50 20", "-1", "unread"),
            "5\t1\t1",
            row("1 1 1 4", "130 10 50 20", "101", "over"),
        )
    )
    (line,) = lines_from_tsv(tsv)
    assert line.text == 'quote" and tab over'
    assert line.words[-1].confidence == 1.0


def test_nothing_read_is_no_line() -> None:
    assert lines_from_tsv(HEAD) == ()
    assert lines_from_tsv("") == ()
