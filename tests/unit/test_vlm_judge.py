"""Which answers are believed: honest pages of every kind are, every kind of fault is named."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.geometry import Box
from models.text import Line, Word
from models.transcription import Judgement, TokenUsage, Verdict, VlmReply
from pipeline.answers.agreement import word_agreement
from pipeline.answers.judge import (
    AGREEMENT_LIMITS,
    CHECKS,
    LEAST_INK_PER_CHARACTER,
    LEAST_PAGE_INK_SHARE,
    MOST_SAMPLE_CHARS,
    PageEvidence,
    judge_answer,
)
from pipeline.answers.parse import parse_answer
from pipeline.answers.prompt import SYSTEM_PROMPT, user_text
from pipeline.answers.repetition import find_loop, tokens_of
from pipeline.answers.table_shape import odd_rows

LETTER = """\
# The harbour of Lund

The harbour was built in the year 1843 by order of the town. Nine vessels may lie at the northern quay and four at
the southern. Each pays according to its length; fishing boats pay nothing between March and October. The watchman
keeps a book of arrivals, in which the master signs. Whoever leaves rubbish on the quay shall pay two crowns.

Lanterns are lit at dusk. In fog the bell is rung every ten minutes until the last boat has returned.
"""
GERMAN = """\
Der Hafen wurde im Jahr 1843 auf Anordnung der Stadt gebaut. Neun Schiffe dürfen am nördlichen Kai liegen und vier am
südlichen. Jedes bezahlt nach seiner Länge; Fischerboote zahlen zwischen März und Oktober nichts. Der Wächter führt ein
Buch der Ankünfte, in dem der Kapitän unterschreibt. Wer Abfall auf dem Kai hinterlässt, zahlt zwei Kronen.
"""
CHINESE = (
    "港口建于一八四三年,由镇政府下令修建。九艘船可停泊在北码头,四艘可停泊在南码头。"
    "每艘船按长度付费,渔船在三月至十月间免费。"
)
RUSSIAN = """\
Гавань построена в 1843 году по распоряжению города. Девять судов могут стоять у северного причала и четыре у южного.
Каждое платит по своей длине; рыбацкие лодки не платят ничего между мартом и октябрём. Сторож ведёт книгу прибытий.
"""
BOX = Box(0, 0, 1, 1)


def lines(text: str, confidence: float | None = 0.95) -> tuple[Line, ...]:
    """What an OCR engine would have read where ``text`` is on the page: words, no tags, no Markdown."""
    bare = parse_answer(text).text
    return tuple(
        Line(
            text=row,
            box=BOX,
            confidence=confidence,
            words=tuple(Word(text=word, box=BOX, confidence=confidence) for word in row.split()),
        )
        for row in bare.split("\n")
        if row.strip()
    )


def reply(text: str, finish_reason: str | None = "stop", tokens: int | None = None) -> VlmReply:
    usage = None if tokens is None else TokenUsage(prompt_tokens=1_400, completion_tokens=tokens)
    return VlmReply(text=text, finish_reason=finish_reason, usage=usage, model_id="fake", elapsed_s=1.0)


def page(
    ocr: str | tuple[Line, ...] = (),
    *,
    ink_share: float | None = None,
    language: str | None = None,
    is_visual: bool = False,
) -> PageEvidence:
    return PageEvidence(
        lines=lines(ocr) if isinstance(ocr, str) else ocr,
        ink_share=ink_share,
        language=language,
        max_tokens=8_000,
        has_visual_elements=is_visual,
    )


def judged(
    answer: str, on: PageEvidence, finish_reason: str | None = "stop", tokens: int | None = None
) -> Judgement:
    return judge_answer(reply(answer, finish_reason, tokens), parse_answer(answer), on)


def table(rows: Sequence[Sequence[str]]) -> str:
    return (
        "<table>"
        + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        + "</table>"
    )


def words(count: int, seed: int = 1) -> str:
    """Words as a language might have them, each another one."""
    draw = random.Random(seed)
    return " ".join(
        "".join(draw.choice("bdfgklmnprstv") + draw.choice("aeiou") for _ in range(draw.randint(2, 4)))
        for _ in range(count)
    )


# Honest pages. Each is judged twice: against an OCR that read it, and against one that could read nothing of it.

ROOMS = table(
    [("Room", "Rent", "Water"), *((f"Room {number}", "0.00", "0.00") for number in range(101, 127))]
)
ZEROS = table([("Item", "Open"), *(("none", "0.00") for _ in range(40))])
SCHEDULE = table([("Day", "Early", "Late"), *(("Monday", "Ana", "Ben"), ("Tuesday", "Ben", "Ana")) * 8])
LOGARITHMS = table(
    [[f"{row}", *(f"{(row * 37 + column * 11) % 10_000:04}" for column in range(10))] for row in range(60)]
)
EMPTY_FORM = table([("Date", "Name", "Amount", "Signature"), *(("", "", "", "") for _ in range(35))])
CONTENTS = "\n\n".join(
    f"{name} {'.' * 90} {number}" for number, name in enumerate(words(30).split(), start=3)
)
SPACED_LEADERS = "\n".join(
    f"{name} {'. ' * 40}{number}" for number, name in enumerate(words(25).split(), start=3)
)
REFRAIN = "\n\n".join(f"{words(18, seed)}\nAnd still the river runs to the sea" for seed in range(7))
LINED_FORM = "Statement of the witness\n\n" + "\n\n".join(["_" * 80] * 30)
BLANKS = "\n".join(
    f"{label}: {'_' * 40}" for label in ("Name", "Street", "Town", "Date of birth", "Signature")
)
ABSENT = "\n".join(["- present"] * 30)
LISTING = "```python\n" + "\n".join(f"    assert f({n}) == {n * n}" for n in range(1, 20)) + "\n```"
NUMBERS = "\n".join(
    " ".join(f"{random.Random(row * 9 + column).randint(0, 99_999)}" for column in range(8))
    for row in range(40)
)
BILINGUAL = f"{LETTER}\n\n{GERMAN}"
DIALOGUE = "\n\n".join(f"**{who}.** {words(9, seed)}" for seed, who in enumerate(["ANA", "BEN"] * 8))
LABELS = "\n\n".join(["Ms Ana Lind\nMill Lane 4\n2210 Lund"] * 12)
LITANY = "\n".join(f"{name.title()}, pray for us." for name in words(40).split())
CHORUS = f"{words(20)}\nha ha ha ha ha ha ha ha\n{words(20, 2)}\nAlleluia, alleluia, alleluia, alleluia!"
CHECKS_IN_BOXES = "\n".join(f"☐ {name} ☐ yes ☐ no" for name in words(20).split())
RULED = "Part one\n\n---\n\n" + words(30) + "\n\n* * *\n\n" + words(30, 2) + "\n\n" + "=" * 60
SPANS = (
    '<table><tr><th rowspan="2">Town</th><th colspan="2">Ships</th></tr><tr><th>in</th><th>out</th></tr>'
    '<tr><td>Lund</td><td>4</td><td>5</td></tr><tr><td colspan="3">Total unknown</td></tr></table>'
)
SECTIONS = table([("Item", "Price"), ("Drinks",), ("Tea", "2"), ("Milk", "1"), ("Food",), ("Cake", "3")])
COUPON = "\n\n".join(
    [
        f"Voucher for one cup of coffee or tea at the harbour café, valid until {month}"
        for month in ("May", "June", "July")
    ]
)
YEARS = "\n".join(f"{year}  {(year * 7919) % 4_000}" for year in range(1900, 1970))

HONEST = {
    "letter": LETTER,
    "german": GERMAN,
    "russian": RUSSIAN,
    "chinese": CHINESE,
    "bilingual": BILINGUAL,
    "table of like rows": f"# Closing balance\n\n{ROOMS}\n\nNo amounts are outstanding.",
    "table of equal rows": ZEROS,
    "schedule": SCHEDULE,
    "logarithms": LOGARITHMS,
    "empty form": EMPTY_FORM,
    "table with spans": SPANS,
    "table with headings between": SECTIONS,
    "contents with leaders": CONTENTS,
    "spaced leaders": SPACED_LEADERS,
    "poem with a refrain": REFRAIN,
    "lines to write on": LINED_FORM,
    "form": BLANKS,
    "list of equal words": ABSENT,
    "listing": LISTING,
    "numbers": NUMBERS,
    "years": YEARS,
    "dialogue": DIALOGUE,
    "litany": LITANY,
    "chorus": CHORUS,
    "boxes to tick": CHECKS_IN_BOXES,
    "rules": RULED,
    "vouchers": COUPON,
    "one line": "Invoice 4711",
    "page number": "12",
    "with facts": f"---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n{LETTER}",
    "in a fence": f"```markdown\n{LETTER}\n```",
    "with chat": f"Sure! Here is the transcription:\n\n{LETTER}\n\nLet me know if I should translate it.",
    "some illegible": LETTER.replace("Lanterns", "[illegible]").replace("dusk", "[illegible]"),
    "apology": "Dear Ana,\n\nI'm sorry, I can't come on Friday. Unfortunately the boat leaves at noon.\n\nYours, Ben",
    "greeting": "Sure!\n\nHere is what we offer: tea, cake and a view of the harbour.",
    "intentionally blank": "This page intentionally left blank",
    "signature": "<signature/>",
    "stamp": "<stamp>TOWN COUNCIL</stamp>",
    "stamp without words": "<stamp></stamp>",
    "figure": "<figure>A ship at the quay</figure>",
    "handwriting": "<handwriting>Dear M, the boat is late again. Yours, B.</handwriting>",
}


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_page_that_ocr_could_read_is_accepted(kind: str) -> None:
    judgement = judged(HONEST[kind], page(HONEST[kind], ink_share=0.08))
    assert judgement.verdict is Verdict.ACCEPTED, judgement.evidence


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_page_that_ocr_could_not_read_is_accepted(kind: str) -> None:
    for unread in (
        page(ink_share=0.08, is_visual=True),
        page(lines("zxqv wkrt", 0.4), ink_share=0.08, is_visual=True),
    ):
        judgement = judged(HONEST[kind], unread)
        assert judgement.verdict is Verdict.ACCEPTED, judgement.evidence


@pytest.mark.parametrize(
    "kind", ["letter", "german", "russian", "table of like rows", "numbers", "bilingual"]
)
def test_a_few_errors_of_the_ocr_cost_no_answer(kind: str) -> None:
    """Every twelfth word misread, some cut in two, case and accents changed."""
    parts = [
        word[:-1] + "ß"
        if number % 12 == 0
        else f"{word[:3]} {word[3:]}"
        if number % 30 == 5
        else word.upper()
        for number, word in enumerate(parse_answer(HONEST[kind]).text.split())
    ]
    judgement = judged(HONEST[kind], page(lines(" ".join(parts)), is_visual=True))
    assert judgement.verdict is Verdict.ACCEPTED, judgement.evidence


def test_what_the_ocr_saw_repeated_is_on_the_page() -> None:
    labels = "\n\n".join(["Ms Ana Lind, Mill Lane 4, 2210 Lund, in the province of Skåne, Sweden"] * 24)
    assert judged(labels, page(labels)).verdict is Verdict.ACCEPTED
    assert judged(labels, page(labels.partition("\n")[0], is_visual=True)).verdict is Verdict.REPETITION


def test_a_form_in_duplicate_is_no_loop_when_the_ocr_saw_both_halves() -> None:
    assert judged(f"{LETTER}\n{LETTER}", page(f"{LETTER}\n{LETTER}")).verdict is Verdict.ACCEPTED
    assert judged(f"{LETTER}\n{LETTER}", page(LETTER)).verdict is Verdict.REPETITION


# Loops.

START = LETTER.strip()
LOOPS = {
    "sentence": START + " In fog the bell is rung every ten minutes." * 12,
    "long loop": START + " In fog the bell is rung every ten minutes until the last boat has returned." * 300,
    "phrase": START + " and of the town" * 40,
    "word": START + " the" * 200,
    "line": START + "\n\nThe watchman keeps a book." * 90,
    "paragraph": f"{START}\n\n" + f"{words(30)}.\n\n" * 3,
    "whole page": f"{START}\n\n{START}",
    "heading": START + "\n\n## Arrivals" * 80,
    "cut within": START + " In fog the bell is rung every ten minutes." * 12 + " In fog the bel",
    "ends after all": START + " In fog the bell is rung every ten minutes." * 12 + "\n\nSigned: Ode",
    "within a cell": f"<table><tr><td>Remark</td><td>{'paid in full and ' * 60}</td></tr></table>",
    "rows": f"{START}\n\n{table([('Tea', 'two crowns')] * 150)}",
    "open rows": f"{START}\n\n<table>" + "<tr><td>Tea</td><td>2.00</td></tr>" * 150 + "<tr><td>Te",
    "long rows": f"{START}\n\n"
    + table([("Tea", "delivered to the northern quay by the master of the ship Ann in good order")] * 30),
    "empty cells": f"{START}\n\n<table><tr>" + "<td></td>" * 900,
    "empty rows": f"{START}\n\n<table>" + "<tr><td></td><td></td></tr>" * 300,
    "whole table": f"{START}\n\n" + table([(words(3, n), words(2, n + 50)) for n in range(12)]) * 2,
    "counter": f"{START}\n\n<table>"
    + "".join(f"<tr><td>Room {n}</td><td>0.00</td></tr>" for n in range(101, 999)),
    "numbered list": START + "\n\n" + "\n".join(f"{n}. Arrival" for n in range(1, 400)),
    "counter alone": START + "\n\n" + "\n".join(str(n) for n in range(1, 900)),
    "dots": f"{START}\n\nChapter one {'.' * 3_000}",
    "spaced dots": f"{START}\n\nChapter one {'. ' * 1_500}",
    "underscores": f"{START}\n\nName {'_' * 4_000}",
    "dashes": f"{START}\n\n" + "-" * 5_000,
    "lines of dashes": START + "\n\n-----\n\n_____" * 120,
    "letters": START + " " + "a" * 2_000,
    "pattern": START + " " + "1.1" + ".1" * 3_000,
    "zeros": START + " 0." + "0" * 2_000,
    "ideographs": CHINESE + "渔船在三月至十月间免费。" * 40,
    "same ideograph": CHINESE + "的" * 500,
    "between others": "\n".join(
        f"{words(3, n)}\nThe watchman keeps the book of arrivals here" for n in range(30)
    ),
    "tags that go": START + "<div>and then the ship left</div>" * 60,
    "in a fence": f"```markdown\n{START}" + " In fog the bell is rung every ten minutes." * 50,
}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("finish_reason", ["length", "stop", None])
def test_a_loop_is_a_loop_however_it_ended(kind: str, finish_reason: str | None) -> None:
    judgement = judged(LOOPS[kind], page(LETTER, ink_share=0.08, is_visual=True), finish_reason)
    assert judgement.verdict is Verdict.REPETITION
    first = judgement.evidence[0]
    assert first.measured > first.limit
    assert first.sample is not None
    assert (finish_reason == "length") == any(found.name == "finish_reason" for found in judgement.evidence)


def test_the_table_of_rooms_is_a_loop_only_where_it_leaves_the_page() -> None:
    """26 rows are on the page, and the OCR saw most of them; 26 more are an error of some kind, 400 a loop."""
    shown = page("\n".join(f"Room {number} 0.00" for number in range(101, 121)), is_visual=True)
    for last, verdict in ((127, Verdict.ACCEPTED), (190, Verdict.REPETITION), (500, Verdict.REPETITION)):
        rooms = table([(f"Room {number}", "0.00") for number in range(101, last)])
        assert judged(rooms, shown).verdict is verdict


@pytest.mark.parametrize("tail", [" " * 3_000, "\n" * 3_000, " \n" * 2_000, "&nbsp;" * 800, "<br>\n" * 700])
def test_white_space_without_end_is_a_loop_and_not_a_lack_of_room(tail: str) -> None:
    assert judged(START + tail, page(LETTER), "length").verdict is Verdict.REPETITION


def test_white_space_after_an_answer_that_stopped_is_nothing() -> None:
    assert judged(START + "\n" * 3_000, page(LETTER)).verdict is Verdict.ACCEPTED


@settings(deadline=None)
@given(st.integers(8, 60), st.integers(12, 40), st.integers(0, 10**6))
def test_any_passage_of_eight_words_or_more_that_comes_a_dozen_times_is_a_loop(
    size: int, times: int, seed: int
) -> None:
    passage = words(size, seed)
    text = f"{START} {f'{passage} ' * times}"
    loop = find_loop(text, tokens_counted(LETTER))
    assert loop is not None
    assert loop.repeats >= times - 1


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(0, 10**6))
def test_words_that_differ_are_no_loop(count: int, seed: int) -> None:
    draw = random.Random(seed)
    vocabulary = words(80, seed).split()
    text = " ".join(draw.choice(vocabulary) for _ in range(count))
    assert find_loop(text, tokens_counted("")) is None


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["0.00", "none", "12", "x", ""]), min_size=3, max_size=3), max_size=50)
)
def test_small_cells_in_any_order_are_no_loop(rows: list[list[str]]) -> None:
    assert find_loop(parse_answer(table(rows)).markdown, tokens_counted("")) is None


def tokens_counted(text: str) -> Counter[str]:
    return Counter(tokens_of(text))


# How it ended.


@pytest.mark.parametrize(
    ("finish_reason", "tokens", "verdict"),
    [
        ("stop", None, Verdict.ACCEPTED),
        ("stop", 8_000, Verdict.ACCEPTED),
        ("STOP", None, Verdict.ACCEPTED),
        ("eos_token", None, Verdict.ACCEPTED),
        ("end_turn", None, Verdict.ACCEPTED),
        (None, None, Verdict.ACCEPTED),
        (None, 700, Verdict.ACCEPTED),
        (None, 8_000, Verdict.TRUNCATED),
        ("length", None, Verdict.TRUNCATED),
        ("length", 8_000, Verdict.TRUNCATED),
        ("MAX_TOKENS", None, Verdict.TRUNCATED),
        ("abort", None, Verdict.TRUNCATED),
        ("tool_calls", None, Verdict.TRUNCATED),
        ("content_filter", None, Verdict.CONTENT_FILTERED),
        ("CONTENT_FILTER", None, Verdict.CONTENT_FILTERED),
    ],
)
def test_an_answer_that_did_not_end_by_itself_is_no_page(
    finish_reason: str | None, tokens: int | None, verdict: Verdict
) -> None:
    assert judged(LETTER, page(LETTER), finish_reason, tokens).verdict is verdict


def test_reasoning_that_ate_all_tokens_is_told_as_truncated() -> None:
    assert judged("<think>\n" + words(900), page(LETTER), "length").verdict is Verdict.TRUNCATED


# Nothing there.


@pytest.mark.parametrize(
    "answer", ["", "---\nblank: true\n---", "[blank page]", "<table></table>", "<handwriting></handwriting>"]
)
def test_nothing_is_no_answer_for_a_page_with_something_on_it(answer: str) -> None:
    for full in (page(LETTER, ink_share=0.08), page(LETTER), page(ink_share=0.08)):
        judgement = judged(answer, full)
        assert judgement.verdict is Verdict.EMPTY
        assert all(found.measured >= found.limit for found in judgement.evidence)


@pytest.mark.parametrize("answer", ["", "---\nblank: true\n---", "The page is blank."])
@pytest.mark.parametrize("ink_share", [0.0, LEAST_PAGE_INK_SHARE / 2])
def test_nothing_is_right_for_a_page_without_ink(answer: str, ink_share: float) -> None:
    assert judged(answer, page(ink_share=ink_share)).verdict is Verdict.ACCEPTED
    assert judged(answer, page(lines("x y z", 0.3), ink_share=ink_share)).verdict is Verdict.ACCEPTED


def test_where_nothing_is_known_of_the_page_only_a_page_said_to_be_blank_is() -> None:
    assert judged("[blank page]", page()).verdict is Verdict.ACCEPTED
    assert judged("", page()).verdict is Verdict.EMPTY


@pytest.mark.parametrize(
    "answer",
    ["[illegible]", "[illegible] [illegible] of [illegible]", "<handwriting>[illegible]</handwriting>"],
)
def test_an_answer_that_read_next_to_nothing_is_told(answer: str) -> None:
    judgement = judged(answer, page(ink_share=0.08, is_visual=True))
    assert judgement.verdict is Verdict.ILLEGIBLE


# Words of the model's own.

REFUSALS = [
    "I'm sorry, but I can't help with transcribing this document.",
    "I’m sorry, I can’t assist with that.",
    "I cannot transcribe this image as it contains personal information.",
    "As an AI language model, I do not have the ability to see images.",
    "Sorry, I am unable to view the attached file.",
    "Unfortunately, I'm not able to read the text in this image. Please provide a clearer image.",
    "Please upload the image you would like me to transcribe.",
    "Je suis désolé, mais je ne peux pas transcrire ce document.",
    "Es tut mir leid, aber ich kann dieses Dokument nicht transkribieren.",
    "Lo siento, pero no puedo ayudar con esta solicitud.",
    "Mi dispiace, ma non posso trascrivere questo documento.",
    "Desculpe, mas não posso transcrever este documento.",
    "Извините, но я не могу распознать это изображение.",
    "很抱歉,我无法识别这张图片中的文字。",
    "申し訳ありませんが、この画像を読み取ることはできません。",
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_is_no_page(answer: str) -> None:
    for known in (page(LETTER, ink_share=0.08), page(ink_share=0.08, is_visual=True), page()):
        judgement = judged(answer, known)
        assert judgement.verdict is Verdict.REFUSAL
        assert judgement.evidence[0].sample


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_page_that_quotes_a_refusal_is_a_page(answer: str) -> None:
    quoted = f"{answer}\n\n{LETTER}"
    assert judged(quoted, page(quoted)).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(
    "answer",
    [
        "The image shows a letter about a harbour, written in English, with a heading and two paragraphs.",
        f"This image contains a scanned document with the following content.\n\n{LETTER}",
        f"{LETTER}\n\nWould you like me to translate the page?\n\nP.S. It is in English.",
        "The document appears to be a set of harbour rules from 1843.",
        "I can see a page with some text about vessels and lanterns.",
    ],
)
def test_talk_about_the_page_is_not_stored_as_the_page(answer: str) -> None:
    assert judged(answer, page(LETTER)).verdict is Verdict.REFUSAL


def test_a_picture_may_be_described() -> None:
    answer = f"<figure>The image shows a ship at the quay</figure>\n\n{LETTER}"
    assert judged(answer, page(LETTER)).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("count", [1, 2])
def test_the_prompt_said_back_is_no_page(count: int) -> None:
    for answer in (
        SYSTEM_PROMPT,
        f"{SYSTEM_PROMPT}\n{user_text(count)}",
        f"{LETTER}\n\n{SYSTEM_PROMPT[-400:]}",
    ):
        judgement = judged(answer, page(LETTER))
        assert judgement.verdict is Verdict.PROMPT_ECHO
        assert judgement.evidence[0].measured > judgement.evidence[0].limit


def test_a_page_that_prints_the_prompt_is_a_page() -> None:
    manual = f"# The prompt\n\n{SYSTEM_PROMPT}"
    assert judged(manual, page(manual)).verdict is Verdict.ACCEPTED


# Against the page.


@pytest.mark.parametrize("answer", [LETTER, "Chapter 12", ROOMS])
def test_text_on_a_page_without_ink_is_invented(answer: str) -> None:
    for blank in (page(ink_share=0.0), page(ink_share=0.0, is_visual=True)):
        assert judged(answer, blank).verdict is Verdict.INVENTED_TEXT


def test_a_page_of_text_where_there_is_ink_for_a_page_number_is_invented() -> None:
    speck = page(lines("12"), ink_share=8 * LEAST_INK_PER_CHARACTER)
    assert judged("12", speck).verdict is Verdict.ACCEPTED
    judgement = judged(LETTER, speck)
    assert judgement.verdict is Verdict.INVENTED_TEXT
    assert judgement.evidence[0].measured > judgement.evidence[0].limit


def test_far_more_words_than_the_ocr_found_are_too_many_unless_ocr_is_blind_there() -> None:
    invented = f"{LETTER}\n\n{words(400)}"
    assert judged(invented, page(LETTER)).verdict is Verdict.OVERLONG
    assert judged(invented, page(LETTER, is_visual=True)).verdict is Verdict.ACCEPTED


def test_more_than_any_page_holds_is_too_long() -> None:
    book = "\n\n".join(words(9_000, seed) for seed in range(3))
    assert judged(book, page(is_visual=True)).verdict is Verdict.OVERLONG


@pytest.mark.parametrize(
    ("original", "answer"),
    [
        (LETTER, CHINESE),
        (LETTER, RUSSIAN),
        (RUSSIAN, LETTER),
        (GERMAN, CHINESE),
        (CHINESE, LETTER),
        (CHINESE, RUSSIAN),
    ],
)
def test_another_script_than_the_page_is_in(original: str, answer: str) -> None:
    judgement = judged(answer, page(original))
    assert judgement.verdict is Verdict.WRONG_SCRIPT
    assert judgement.evidence[0].measured < judgement.evidence[0].limit


def test_an_ocr_that_knows_one_script_of_two_does_not_stop_the_other() -> None:
    mixed = f"{GERMAN}\n\n{RUSSIAN}\n\n{RUSSIAN.replace('1843', '1844').upper()}"
    assert judged(mixed, page(GERMAN, is_visual=True)).verdict is Verdict.ACCEPTED


def test_an_ocr_that_guessed_letters_is_no_witness() -> None:
    assert judged(RUSSIAN, page(lines(LETTER, 0.5), is_visual=True)).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(("original", "answer"), [(GERMAN, LETTER), (LETTER, GERMAN)])
def test_a_translation_has_lost_the_words_of_the_page(original: str, answer: str) -> None:
    known = page(original, language="de" if original is GERMAN else "en")
    judgement = judged(f"---\nlanguage: {'en' if original is GERMAN else 'de'}\n---\n{answer}", known)
    assert judgement.verdict is Verdict.LOST_WORDS
    assert [found.name for found in judgement.evidence] == ["word_agreement", "language_differs"]


@pytest.mark.parametrize(
    "answer",
    [
        words(70),
        LETTER.partition("\n\n")[0],
        "\n\n".join(LETTER.split("\n\n")[::2]),
        "A text about a harbour, its vessels, its watchman and its lanterns.",
        "<signature/>",
        "<figure>A page of text</figure>",
    ],
)
def test_an_answer_without_the_words_that_the_ocr_is_sure_of_is_refused(answer: str) -> None:
    judgement = judged(answer, page(LETTER, is_visual=True))
    assert judgement.verdict is Verdict.LOST_WORDS
    first = judgement.evidence[0]
    assert first.measured < first.limit
    assert first.sample


def test_order_spelling_and_hyphens_do_not_count_against_an_answer() -> None:
    read = lines(
        "The northern quay was re-\nbuilt in the year 1843; its lan-\nterns are lít at DUSK by wellknown men"
    )
    answer = "At dusk its lanterns are lit by well-known men.\n\nIn 1843 the northern quay was rebuilt. Year unknown."
    agreement = word_agreement(read, answer)
    assert agreement.wanted == agreement.found


def test_a_word_that_is_there_once_is_not_found_twice() -> None:
    agreement = word_agreement(lines("harbour harbour harbour quay"), "harbour quay")
    assert (agreement.wanted, agreement.found, agreement.missing) == (4, 2, ("harbour",))


def test_unsure_short_and_odd_words_do_not_count() -> None:
    assert word_agreement(lines("of the 12 x1", 0.99), "").wanted == 0
    assert word_agreement(lines("harbour vessels", 0.84), "").wanted == 0
    assert word_agreement(lines("harbour vessels 1843", None), "").wanted == 3


@pytest.mark.parametrize("count", [1, 2, 3])
def test_next_to_no_words_of_the_ocr_are_no_evidence(count: int) -> None:
    assert judged("Dear Ben", page(words(count), is_visual=True)).verdict is Verdict.ACCEPTED


@settings(deadline=None)
@given(st.integers(4, 200), st.floats(0, 1), st.integers(0, 10**6))
def test_the_share_of_lost_words_alone_decides(count: int, kept: float, seed: int) -> None:
    original = words(count, seed).split()
    answer = original[: round(kept * count)]
    agreement = word_agreement(lines(" ".join(original)), " ".join(answer))
    limit = next(limit for least, limit in AGREEMENT_LIMITS if agreement.wanted >= least)
    judgement = judged(" ".join(answer) or "[illegible]", page(" ".join(original), is_visual=True))
    is_lost = judgement.verdict in (Verdict.LOST_WORDS, Verdict.ILLEGIBLE)
    assert is_lost == (agreement.share < limit)


@settings(deadline=None)
@given(st.lists(st.text("abcdefgh", min_size=4, max_size=8), max_size=40), st.randoms())
def test_agreement_does_not_depend_on_order(found: list[str], shuffler: random.Random) -> None:
    mixed = list(found)
    shuffler.shuffle(mixed)
    agreement = word_agreement(lines(" ".join(found)), " ".join(mixed))
    assert agreement.found == agreement.wanted == len(found)


# Rotation.


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_that_lies_on_its_side_is_turned_before_anything_else_is_asked(turn: int) -> None:
    facts = f"---\nlanguage: en\nrotation: {turn}\nblank: false\n---\n\n"
    for answer in ("", "[illegible]", words(20), "the the " * 300):
        judgement = judged(facts + answer, page(LETTER), "length" if answer else "stop")
        assert judgement.verdict is Verdict.NOT_UPRIGHT
        assert judgement.evidence[0].measured == turn


def test_a_page_that_was_read_well_was_upright_whatever_the_answer_says() -> None:
    assert judged(f"---\nrotation: 90\n---\n{LETTER}", page(LETTER)).verdict is Verdict.ACCEPTED
    assert judged("---\nrotation: 0\n---\n" + LETTER, page(LETTER)).verdict is Verdict.ACCEPTED


# Tables.

BROKEN = {
    "a cell short": [("a", "b", "c"), ("d", "e", "f"), ("g", "h")],
    "a cell over": [("a", "b"), ("c", "d"), ("e", "f", "g")],
    "cut off": [("a", "b", "c"), ("d", "e", "f"), ("g",)],
    "ragged": [("a", "b"), ("c", "d", "e"), ("f", "g"), ("h", "i", "j", "k")],
    "two rows": [("a", "b"), ("c",)],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_table_with_rows_of_unequal_width_is_refused(kind: str) -> None:
    judgement = judged(f"{LETTER}\n\n{table(BROKEN[kind])}", page(LETTER, is_visual=True))
    assert judgement.verdict is Verdict.BROKEN_TABLE
    first, second = judgement.evidence
    assert (first.name, second.name) == ("row_width", "odd_rows")
    assert first.measured != first.limit
    assert second.measured >= 1


@pytest.mark.parametrize(
    ("markup", "odd"),
    [
        (SPANS, 0),
        (SECTIONS, 0),
        ("<table><caption>Ships</caption><tr><td>a</td><td>b</td></tr></table>", 0),
        ("<table></table>", 0),
        ("<table><tr><td>a</td></tr><tr><td>b</td></tr></table>", 0),
        ("<table><tr><td rowspan='9'>a</td><td>b</td></tr><tr><td>c</td></tr></table>", 0),
        (
            "<table><tr><td rowspan='2'>a</td><td rowspan='2'>b</td></tr><tr></tr>"
            "<tr><td>c</td><td>d</td></tr></table>",
            0,
        ),
        (
            "<table><tr><td colspan='2'>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr>"
            "<tr><td>e</td><td>f</td></tr></table>",
            1,
        ),
        (
            "<table><tr><td>a</td><td rowspan='2'>b</td></tr><tr><td>c</td><td>d</td></tr>"
            "<tr><td>e</td><td>f</td></tr></table>",
            1,
        ),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td colspan='0'>c</td><td>d</td></tr></table>", 0),
        (
            "<table><tr><td>a</td><td><table><tr><td>x</td><td>y</td><td>z</td></tr></table></td></tr><tr><td>b</td><td>c</td></tr></table>",
            0,
        ),
        (f"<table><tr><td rowspan='{'9' * 50}' colspan='100000'>a</td></tr></table>", 0),
    ],
)
def test_widths_are_counted_with_spans(markup: str, odd: int) -> None:
    assert len(odd_rows(markup)) == odd


@settings(deadline=None)
@given(st.data())
def test_any_tiling_of_a_grid_is_a_sound_table(data: st.DataObject) -> None:
    """Rectangles that cover a grid once, written as HTML does."""
    height, width = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 6))
    free = {(row, column) for row in range(height) for column in range(width)}
    rows: list[list[str]] = [[] for _ in range(height)]
    for row in range(height):
        for column in range(width):
            if (row, column) not in free:
                continue
            right = data.draw(
                st.integers(1, next(n for n in range(1, width + 2) if (row, column + n) not in free))
            )
            down = data.draw(st.integers(1, 3)) if row + 3 <= height else 1
            cells = {(row + y, column + x) for y in range(down) for x in range(right)}
            if not cells <= free:
                down, cells = 1, {(row, column + x) for x in range(right)}
            free -= cells
            rows[row].append(f'<td rowspan="{down}" colspan="{right}">x</td>')
    markup = "<table>" + "".join(f"<tr>{''.join(row)}</tr>" for row in rows) + "</table>"
    assert odd_rows(markup) == ()


def test_a_table_with_bars_is_judged_like_any_other() -> None:
    broken = "| a | b |\n|---|---|\n| c | d |\n| e | f | g |"
    assert judged(f"{LETTER}\n\n{broken}", page(LETTER, is_visual=True)).verdict is Verdict.BROKEN_TABLE


# All verdicts.


def test_the_documentation_lists_the_checks_in_their_order() -> None:
    page_text = (Path(__file__).parent.parent.parent / "docs" / "vlm.md").read_text(encoding="utf-8")
    section = page_text.partition("### The verdicts\n")[2].partition("\n#")[0]
    stated = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert stated == [verdict.value for verdict, _ in CHECKS]


@settings(deadline=None)
@given(
    st.text(),
    st.sampled_from(["stop", "length", None, "content_filter"]),
    st.floats(0, 1) | st.none(),
    st.booleans(),
)
def test_whatever_the_answer_it_is_judged_with_reasons(
    answer: str, finish_reason: str | None, ink_share: float | None, is_visual: bool
) -> None:
    judgement = judged(answer, page(LETTER, ink_share=ink_share, is_visual=is_visual), finish_reason)
    assert judgement.evidence
    assert all(len(found.sample or "") <= MOST_SAMPLE_CHARS for found in judgement.evidence)
    assert judgement == judged(answer, page(LETTER, ink_share=ink_share, is_visual=is_visual), finish_reason)


def test_text_that_swells_when_it_is_compared_is_cut() -> None:
    """One sign can stand for a phrase of eighteen; the words after two hundred thousand characters are lost."""
    wanted = lines("harbour quay lantern watchman")
    assert word_agreement(wanted, "harbour quay lantern watchman" + "\ufdfa" * 100_000).share == 1.0
    assert word_agreement(wanted, "\ufdfa" * 100_000 + " harbour quay lantern watchman").share == 0.0
