"""From a model's words to a page: what comes off, what stays, what can never be in it."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.answers.facts import split_facts
from pipeline.answers.markup import ALLOWED_TAGS
from pipeline.answers.parse import MOST_CHARS, parse_answer, split_pages
from pipeline.answers.prompt import SYSTEM_PROMPT, prompt_version, user_text

PAGE = """\
# Rules of the reading room

Books may be taken to the tables, two at a time. Bags stay at the door.

<stamp>CITY LIBRARY</stamp>"""

FACTS = "---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n"


# What stands around the page.


@pytest.mark.parametrize(
    "answer",
    [
        PAGE,
        f"\n\n{PAGE}\n",
        f"```markdown\n{PAGE}\n```",
        f"```md\n{PAGE}\n```\n",
        f"```\n{PAGE}\n```",
        f"~~~markdown\n{PAGE}\n~~~",
        f"````markdown\n{PAGE}\n````",
        f"```markdown\n{PAGE}",
        f"```html\n{PAGE}\n```",
        FACTS + PAGE,
        f"```markdown\n{FACTS}{PAGE}\n```",
        f"{FACTS}```markdown\n{PAGE}\n```",
        f"Sure! Here is the transcription:\n\n{FACTS}{PAGE}",
        f"<think>The page shows rules.</think>\n\n{PAGE}",
        f"The page shows rules. I copy them.\n</think>\n\n{PAGE}",
        f"<think>\n# A first try\n</think>\n```markdown\n{PAGE}\n```",
        f"{PAGE}<|im_end|>",
        f"<answer>\n{PAGE}\n</answer>",
        PAGE.replace("\n", "\r\n"),
        f"\ufeff{PAGE}\x00",
    ],
)
def test_the_wrapping_of_an_answer_comes_off(answer: str) -> None:
    assert parse_answer(answer).markdown == PAGE


@pytest.mark.parametrize(
    "greeting",
    [
        "Sure! Here is the transcription of the document you provided:",
        "Sure, here's the text from the image:",
        "Certainly! Below is the extracted text in Markdown format:",
        "Here is the Markdown transcription of the page:",
        "Sure!\n\nHere is the transcription of the image:",
        "**Here is the transcribed text:**",
        "Of course. I have transcribed the page for you:",
        "Okay, this is the OCR result of the scan you uploaded:",
        "Voici la transcription de la page :",
        "Bien sûr ! Voici le texte extrait du document :",
        "Hier ist die Transkription der Seite:",
        "Gerne! Hier ist der extrahierte Text:",
        "Aquí está la transcripción del documento:",
        "Ecco la trascrizione del documento:",
        "Aqui está a transcrição:",
        "Hier is de transcriptie van de pagina:",
        "Вот транскрипция страницы:",
        "以下是图片中的文字转录:",
        "好的,以下是识别结果:",
        "以下は文字起こしです:",
    ],
)
def test_a_greeting_goes(greeting: str) -> None:
    for answer in (
        f"{greeting}\n\n{PAGE}",
        f"{greeting}\n\n---\n\n{PAGE}",
        f"{greeting}\n```markdown\n{PAGE}\n```",
    ):
        parsed = parse_answer(answer)
        assert parsed.markdown == PAGE
        assert "chat" in parsed.removed


@pytest.mark.parametrize(
    "farewell",
    [
        "Let me know if you would like me to summarise it or translate it.",
        "Would you like me to translate this page?",
        "If you need the transcription in another format, feel free to ask.",
        "Please let me know if I should format the table differently.",
        "**Note:** Parts of the transcription may be wrong, because the image is blurred.",
        "N'hésitez pas si vous souhaitez que je traduise ce texte.",
        "Lassen Sie mich wissen, ob ich den Text übersetzen soll.",
        "Si necesitas que lo traduzca al inglés, avísame.",
        "如果您需要翻译,请告诉我。",
    ],
)
def test_an_offer_at_the_end_goes(farewell: str) -> None:
    for answer in (
        f"{PAGE}\n\n{farewell}",
        f"{PAGE}\n\n---\n\n{farewell}",
        f"```markdown\n{PAGE}\n```\n\n{farewell}",
    ):
        assert parse_answer(answer).markdown == PAGE


@pytest.mark.parametrize(
    "farewell", ["I hope this helps!", "Let me know if you need anything else.", "Feel free to ask!"]
)
def test_a_mere_farewell_goes_only_where_there_was_other_chat(farewell: str) -> None:
    greeted = f"Here is the transcription:\n\n{PAGE}\n\n{farewell}"
    assert parse_answer(greeted).markdown == PAGE
    assert parse_answer(f"```markdown\n{PAGE}\n```\n{farewell}").markdown == PAGE
    assert parse_answer(f"{PAGE}\n\n{farewell}").markdown.endswith(farewell)


@pytest.mark.parametrize(
    "page",
    [
        "Here is the text of the agreement:\n\nThe parties agree.",
        "Sure!\n\nYou can win a bicycle.",
        "Here is what you need for the cake:\n\n- flour\n- eggs",
        "Dear Ms Lind,\n\nthe parcel has arrived.\n\nPlease let me know if you need any additional information.",
        "Dear all,\n\nI am on leave.\n\nIf you have questions about the document, ask Mr Ode.",
        "Note: all prices without tax.\n\nNote: valid until May.",
        "I hope this letter finds you well.\n\nI hope that you can come.",
        "This page intentionally left blank",
        "Certainly not.",
        "Yes: the text is the law.",
    ],
)
def test_a_page_that_greets_or_offers_help_stays_whole(page: str) -> None:
    parsed = parse_answer(page)
    assert parsed.markdown == page
    assert parsed.removed == ()


def test_a_reasoning_that_never_ends_leaves_nothing() -> None:
    parsed = parse_answer("<think>\nThe page seems to be a list. " + "Wait, let me look again. " * 50)
    assert parsed.markdown == ""
    assert parsed.removed == ("reasoning",)
    assert not parsed.is_blank


@pytest.mark.parametrize(
    "page",
    [
        "# Install\n\nRun this:\n\n```sh\nmake install\n```\n\nThen that:\n\n```\nmake test\n```",
        "```python\nprint('hello')\n```",
        "```\nfirst listing\n```\n\nbetween\n\n```\nsecond listing\n```",
        "How to write Markdown:\n\n```markdown\n# A title\n```\n\nThat is all.",
    ],
)
def test_fences_of_the_page_stay(page: str) -> None:
    assert parse_answer(page).markdown == page
    assert parse_answer(f"```markdown\n{page}\n```").markdown == page


def test_a_listing_that_the_token_limit_cut_is_closed() -> None:
    assert parse_answer("# Code\n\n```c\nint main(").markdown == "# Code\n\n```c\nint main(\n```"


# Front matter.


@pytest.mark.parametrize(
    ("block", "language", "rotation_deg", "is_blank"),
    [
        ("---\nlanguage: en\nrotation: 0\nblank: false\n---\n", "en", 0, False),
        ("---\nlanguage: de\nrotation: 90\nblank: false\n...\n", "de", 90, False),
        ("language: fr\nrotation: 180\nblank: false\n---\n", "fr", 180, False),
        ("language: fr\nrotation: 180\nblank: no\n\n", "fr", 180, False),
        ("---\nlanguage: no\nrotation: 0\n---\n", "no", 0, None),
        ("---\nlanguage: English\n---\n", "en", None, None),
        ("---\nlanguage: en-GB\nrotation: '270'\n---\n", "en", 270, None),
        ("---\nlanguage: deu\nrotation: -90\n---\n", "de", 270, None),
        ("---\nlanguage: [nl, fr]\nrotation: 90 degrees counterclockwise\n---\n", "nl", 270, None),
        ("---\nlanguage:\n  - es\n  - ca\n---\n", "es", None, None),
        ("---\n{language: it, rotation: 0, blank: false}\n---\n", "it", 0, False),
        (
            "---\nprimary_language: pt\nis_rotation_valid: True\nrotation_correction: 0\nis_table: False\n---\n",
            "pt",
            0,
            None,
        ),
        ("---\n**Language:** en\n**Rotation:** 90°\n---\n", "en", 90, None),
        ("---\nlanguage: en # mostly\nrotation: 45\nblank: maybe\n---\n", "en", None, None),
        ("---\nlanguage: null\nrotation: none\nblank: False\n---\n", None, 0, False),
        ("---\nlanguage: en\nrotation: 0\nblank: false\n\n", "en", 0, False),
        ("```yaml\nlanguage: sv\nrotation: 0\n```\n", "sv", 0, None),
        ("```yaml\n---\nlanguage: sv\n---\n```\n", "sv", None, None),
        ("---\nlanguage: [en\nrotation: 90\n---\n", None, 90, None),
        ('---\nlanguage: "en\nrotation: 90\n---\n', "en", 90, None),
        ("---\nx: &x [1, 1]\ny: &y [*x, *x]\nlanguage: fi\n---\n", "fi", None, None),
        ("---\nlanguage: !!python/name:os.system en\nrotation: 0\n---\n", None, 0, None),
    ],
)
def test_page_facts_are_read_however_they_are_written(
    block: str, language: str | None, rotation_deg: int | None, is_blank: bool | None
) -> None:
    facts, rest = split_facts(block + PAGE)
    assert facts is not None
    assert (facts.language, facts.rotation_deg, facts.is_blank) == (language, rotation_deg, is_blank)
    assert rest.strip() == PAGE
    parsed = parse_answer(block + PAGE)
    assert (parsed.markdown, parsed.language, parsed.rotation_deg) == (PAGE, language, rotation_deg)


@pytest.mark.parametrize(
    "page",
    [
        "---\n\nChapter One\n\n---\n\nIt was late.",
        "---\ntitle: A form\nauthor: nobody\n---\n\nText",
        "Language: English\nPages: 3\n\nThe course takes a week.",
        "---\n\nLanguage: English\nThe course is taught by Mr Ode and takes a week.\n\n---\n\nText",
        "language: en\n\nText",
        "---",
        "---\n---\n\nText",
    ],
)
def test_a_page_that_looks_like_front_matter_is_text(page: str) -> None:
    facts, rest = split_facts(page)
    assert facts is None
    assert rest == page


@pytest.mark.parametrize(
    "bomb", ["[" * 1_900, "- " * 900, "{a: " * 400, "a: &a [b]\nc: " + "[*a]" * 300, "\t" * 500]
)
def test_hostile_front_matter_is_refused_or_read_by_the_line(bomb: str) -> None:
    parsed = parse_answer(f"---\n{bomb}\nlanguage: en\n---\n{PAGE}")
    assert parsed.language in (None, "en")
    assert PAGE in parsed.markdown


def test_front_matter_is_looked_for_only_at_the_top_and_not_far() -> None:
    late = "x\n" * 2_000 + "---\nlanguage: en\n---\n"
    assert parse_answer(late).language is None


@pytest.mark.parametrize(
    "answer",
    [
        "---\nlanguage: null\nrotation: 0\nblank: true\n---",
        "---\nblank: true\n---\n\n[blank page]",
        "[blank page]",
        "*(blank)*",
        "This page is blank.",
        "The page appears to be completely blank.",
        "The image is empty, with no visible text.",
        "No text is visible on the page.",
        "There is no legible text in the image.",
        "Cette page est vide",
        "Die Seite ist leer.",
        "空白页",
        "```markdown\n[Blank]\n```",
    ],
)
def test_a_page_said_to_be_blank(answer: str) -> None:
    parsed = parse_answer(answer)
    assert (parsed.is_blank, parsed.markdown, parsed.text) == (True, "", "")


@pytest.mark.parametrize("answer", ["", "   \n", "---\nlanguage: en\nblank: false\n---", "<think>"])
def test_silence_is_not_a_blank_page(answer: str) -> None:
    assert (parse_answer(answer).is_blank, parse_answer(answer).markdown) == (False, "")


def test_text_is_believed_before_the_word_blank() -> None:
    assert not parse_answer(f"---\nblank: true\n---\n{PAGE}").is_blank


# Several pages.


def test_an_answer_for_several_pages_is_parted_at_its_marks() -> None:
    answer = f"<!-- page 1 -->\n{FACTS}one\n\n<!-- page 2 -->\n{FACTS}two\n\n<!-- Page 3 -->\nthree"
    parts = split_pages(answer, 3)
    assert parts is not None
    assert [parse_answer(part).markdown for part in parts] == ["one", "two", "three"]
    assert split_pages("one", 1) == ("one",)


@pytest.mark.parametrize(
    "answer",
    ["one", "<!-- page 1 -->\none", "<!-- page 2 -->\na\n<!-- page 1 -->\nb", "<!-- page 1 -->\na\n" * 2],
)
def test_pages_that_cannot_be_told_apart_are_not_guessed(answer: str) -> None:
    assert split_pages(answer, 2) is None


def test_marks_of_pages_are_no_text() -> None:
    assert parse_answer(f"<!-- page 1 -->\n\n{PAGE}").markdown == PAGE


# HTML.

TABLE = (
    '<table><tr><th colspan="2">Fruit</th></tr>'
    '<tr><td rowspan="2">Apples</td><td>3</td></tr><tr><td></td></tr></table>'
)


@pytest.mark.parametrize(
    "written",
    [
        TABLE,
        f"\n{TABLE}\n",
        TABLE.replace("><", ">\n  <"),
        TABLE.upper().replace("FRUIT", "Fruit").replace("APPLES", "Apples"),
        TABLE.replace("<table>", '<table border="1" class="x" style="color:red"><tbody>').replace(
            "</table>", "</tbody></table>"
        ),
        TABLE.replace('colspan="2"', "colspan=2 align='left' onclick='x()'"),
        TABLE.replace("<td>3", "<td id=a><div>3</div>"),
        TABLE.replace("</table>", ""),
        f"```html\n{TABLE}\n```",
    ],
)
def test_tables_take_one_form(written: str) -> None:
    parsed = parse_answer(written)
    assert parsed.markdown == TABLE
    assert parsed.tables == (TABLE,)
    assert parsed.text == "Fruit\nApples  3"


def test_a_table_stands_on_a_line_of_its_own() -> None:
    parsed = parse_answer(f"before {TABLE} after {TABLE}")
    assert parsed.markdown == f"before \n\n{TABLE}\n\n after \n\n{TABLE}".replace(" \n", "\n")
    assert parsed.tables == (TABLE, TABLE)


def test_tables_with_bars_become_html_with_every_cell() -> None:
    parsed = parse_answer(
        "Prices\n\n| Item | Price |\n|:---|---:|\n| **Tea** & milk | 2 \\| 3 |\n| Cake |\n| a | b | c |\n\nEnd"
    )
    assert parsed.tables == (
        "<table><tr><th>Item</th><th>Price</th></tr><tr><td><strong>Tea</strong> & milk</td><td>2 | 3</td></tr>"
        "<tr><td>Cake</td></tr><tr><td>a</td><td>b</td><td>c</td></tr></table>",
    )
    assert parsed.text == "Prices\n\nItem  Price\nTea & milk  2 | 3\nCake\na  b  c\n\nEnd"


def test_a_bar_alone_makes_no_table() -> None:
    assert parse_answer("a | b\n\nc | d").tables == ()


@pytest.mark.parametrize(
    ("written", "markdown"),
    [
        ("<handwriting>Dear M.", "<handwriting>Dear M.</handwriting>"),
        ("<HANDWRITING class=x>Dear</HANDWRITING>", "<handwriting>Dear</handwriting>"),
        ("<signature>", "<signature/>"),
        ("<signature/> <signature></signature>", "<signature/> <signature/>"),
        ("<signature>J. Ode</signature>", "<signature/> J. Ode"),
        ("x<sup>2</sup> H<sub>2</sub>O<br/>next", "x<sup>2</sup> H<sub>2</sub>O<br>next"),
        ("<stamp>PAID</stamp></stamp>", "<stamp>PAID</stamp>"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<h2>Head</h2>text", "## Head\n\ntext"),
        ("<span style='x'>a</span><font>b</font>", "ab"),
        ("<page_number>12</page_number>", "12"),
        ("<div><div>deep</div></div>", "deep"),
        ("<a href='https://example.org'>site</a>", "site"),
        ("<img src=x onerror=alert(1)>text", "text"),
        ("a<script>alert(1)</script>b<style>p{}</style>", "ab"),
        ("<iframe src='x'>y</iframe>text", "text"),
        ("<svg onload=alert(1)>text</svg>", ""),
        ("<!-- secret -->text<!DOCTYPE html>", "text"),
        ("<td>a</td><td>b</td>", "a  b"),
        (f"<handwriting>{TABLE}</handwriting>", f"<handwriting>\n\n{TABLE}\n\n</handwriting>"),
        (f"<figure>{TABLE}</figure>", f"<figure>\n\n{TABLE}\n\n</figure>"),
        ("<td>", ""),
    ],
)
def test_html_is_reduced_to_the_contract(written: str, markdown: str) -> None:
    assert parse_answer(written).markdown == markdown


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "if a <b and c> d",
        "write to <john@example.org>",
        "AT&T, Smith & Sons, R&D; 5 &c.",
        "p<0.05, x<y",
        "<3 <- <= <<x>>",
        "use the <script> tag, or <?xml version='1.0'?>",
        "<config><name>x</name></config>",
        "see <https://example.org/a?b=1&c=2>",
        "List<String> x = new ArrayList<>();",
        "</nothing>",
        "100 % & more <",
    ],
)
def test_text_that_looks_like_markup_survives(text: str) -> None:
    assert parse_answer(text).text == text
    inside = parse_answer(f"<table><tr><td>{text}</td><td>1</td></tr></table>")
    assert inside.text == f"{text}  1"


def test_entities_become_what_they_stand_for_unless_that_is_markup() -> None:
    parsed = parse_answer(
        "Caf&eacute; &amp; Bar&nbsp;&mdash; &lt;b&gt; &#60;script&#62; &amp;lt; &quot;x&quot; &bogus;"
    )
    assert parsed.markdown == 'Café & Bar — &lt;b> &lt;script> &amp;lt; "x" &bogus;'
    assert parsed.text == 'Café & Bar — <b> <script> &lt; "x" &bogus;'


def test_listings_keep_their_signs() -> None:
    page = '```c\n#include <stdio.h>\nif (a < b && c) { puts("<b>&amp;</b>"); }\n```'
    assert parse_answer(f"Example\n\n{page}").markdown == f"Example\n\n{page}"
    assert (
        '#include <stdio.h>\nif (a < b && c) { puts("<b>&amp;</b>"); }'
        in parse_answer(f"Example\n\n{page}").text
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("[site](https://example.org/a_(b))", "site"),
        ("[click](javascript:alert(1))", "click"),
        ("[click](JAVA\tSCRIPT:alert(1))", None),
        ("[click](<javascript:alert(1)>)", "click"),
        ("[click](java&#115;cript:alert(1))", "click"),
        ("[click](javascript&colon;alert(1))", "click"),
        ("[click](javascript\\:alert)", "click"),
        ("[a [b] c](javascript:alert(1))", "[a [b] c](javascript:alert(1))"),
        ("[x](data:text/html;base64,AAAA)", "x"),
        ("[x](vbscript:y)", "x"),
        ("![a chart](data:image/png;base64,AAAA)", "a chart"),
        ("![a chart](https://example.org/t.gif)", "a chart"),
        ("![a [b]](https://example.org/t.gif)", None),
        ("[r]: javascript:alert(1)\n\n[r]", None),
        ("![p][r]\n\n[r]: https://example.org/t.gif", None),
        ("[1](Gen:3) and f[i](x)", "[1](Gen:3) and f[i](x)"),
        ("Wow![1]", "Wow![1]"),
        ("Text[^1]\n\n[^1]: A note", "Text[^1]\n\n[^1]: A note"),
        ("[1]: Smith", "[1]: Smith"),
    ],
)
def test_no_link_runs_and_no_picture_is_fetched(written: str, text: str | None) -> None:
    parsed = parse_answer(written)
    page = _Page(parsed.markdown)
    assert not page.tags & {"img", "script"}
    assert all(address.startswith("https://") or ":" not in address for address in page.addresses)
    assert text is None or parsed.text == text


# Characters.


@pytest.mark.parametrize(
    ("written", "markdown"),
    [
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("e\u0301te\u0301", "été"),
        ("a\x00b\x07c\x1b[31m", "abc[31m"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("right\u202eleft \ufffd", "rightleft"),
        ("one\u2028two\u2029three\x85four\r\nfive\rsix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a\u00a0b\u3000c", "a b c"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("x\n\n\n\n\ny   \nz", "x\n\ny  \nz"),
    ],
)
def test_only_characters_that_a_page_can_hold_are_left(written: str, markdown: str) -> None:
    assert parse_answer(written).markdown == markdown


def test_decomposed_letters_spelt_as_entities_are_composed() -> None:
    assert parse_answer("e&#x301;t&#xe9; &shy;&#8203;x").markdown == "été x"


# Plain text.


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("# Title\n\n**bold** and *soft* and `code`", "Title\n\nbold and soft and code"),
        ("- a\n- b\n\n1986. A year\n1987. Next", "- a\n- b\n\n1986. A year\n1987. Next"),
        ("3.\n4. four", "3.\n4. four"),
        ("> quoted\n> lines", "quoted\nlines"),
        ("line one\nline two  \nline three", "line one\nline two\nline three"),
        ("<handwriting>\n**Dear** M\n</handwriting>", "Dear M"),
        ("<figure>A chart</figure>\n\n<stamp>PAID</stamp> <signature/>", "A chart\n\nPAID"),
        ("Total\n=====\n\n5 \\* 3", "Total\n\n5 * 3"),
        ("    indented *text*", "indented text"),
        ("- - - - - x", "- - - - - x"),
        ("Name: ____ Date: ____", "Name: ____ Date: ____"),
        ("snake_case and 2*3*4", "snake_case and 234"),
        (
            "<table><caption>Prices</caption><tr><td>a<br>b</td><td><table><tr><td>c</td></tr></table></td></tr></table>",
            "Prices\na b  c",
        ),
    ],
)
def test_plain_text_has_the_words_without_the_markup(written: str, text: str) -> None:
    assert parse_answer(written).text == text


# Size.


@pytest.mark.parametrize(
    "unit",
    ["word ", "[", "<b>", "<!--", "](", "&lt;", "```\n", "> ", "1. a\n", "<td>x", "|", "\\", "(a", " ", "字"],
)
def test_an_answer_without_end_is_cut(unit: str) -> None:
    parsed = parse_answer(unit * (400_000 // len(unit)))
    assert "excess" in parsed.removed
    assert len(parsed.markdown) < 4 * MOST_CHARS


# Whatever comes.

FRAGMENTS = [
    *("<table>", "</table>", "<tr>", "<td>", "</td>", '<td colspan="3">', "<th rowspan=99999>", "<caption>"),
    *(
        "<handwriting>",
        "</handwriting>",
        "<stamp>",
        "<signature/>",
        "<signature>",
        "<figure>",
        "</figure>",
        "<b>",
        "</b>",
    ),
    *(
        "<br>",
        "<div>",
        "</div>",
        "<h1>",
        "<li>",
        "<script>",
        "</script>",
        "<style>",
        "<a href=javascript:x>",
        "<math>",
    ),
    *(
        "<img src=x onerror=y>",
        "<svg/onload=x>",
        "<!--",
        "-->",
        "<!DOCTYPE html>",
        "<?xml",
        "<",
        ">",
        "&",
        "&lt;",
    ),
    *(
        "&amp;",
        "&amp;lt;",
        "&#60;",
        "&nbsp;",
        "&#x301;",
        "&shy;",
        "```",
        "```markdown",
        "\n```\n",
        "\n~~~\n",
        "---",
        "\n---\n",
    ),
    *(
        "language: en",
        "\nrotation: 90\n",
        "blank: true",
        "<think>",
        "</think>",
        "[blank page]",
        "The page is blank.",
    ),
    *(
        "Sure! Here is the transcription of the image:",
        "Let me know if I should translate it.",
        "I hope this helps!",
    ),
    *(
        "| a | b |",
        "\n|---|---|\n",
        "|",
        "\\|",
        "\\",
        "![x](data:y)",
        "[x](javascript:y)",
        "](",
        "![",
        "]:",
        "[^1]: x",
    ),
    *(
        "[a]: javascript:x",
        "(",
        "[",
        "]",
        "**",
        "*",
        "_",
        "`",
        "# ",
        "- ",
        "1. ",
        "> ",
        "    ",
        "\t",
        " ",
        "\n",
        "\n\n",
    ),
    *(
        "\r\n",
        "\x00",
        "\u00ad",
        "\ud800",
        "e\u0301",
        "\u200b",
        "\u2028",
        "word",
        "Ж",
        "字",
        "<|im_end|>",
        "<textarea>",
        "<pre>",
    ),
    *(
        "<select>",
        "<plaintext>",
        "<template>",
        "<unknown>",
        "<john@x.org>",
        "<answer>",
        "<code>",
        "</code>",
        "<body>",
    ),
]
answers = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=14).map("".join)


class _Page(HTMLParser):
    """A page as a browser would get it."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.attributes: set[str] = set()
        self.feed(MarkdownIt("commonmark", {"html": True}).render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


OF_MARKDOWN = {"p", "ul", "ol", "li", "a", "pre", "blockquote", "hr", *(f"h{level}" for level in range(1, 7))}


@settings(deadline=None)
@given(answers)
def test_whatever_the_answer_its_page_shows_only_what_the_contract_has(answer: str) -> None:
    page = _Page(parse_answer(answer).markdown)
    assert page.tags <= ALLOWED_TAGS | OF_MARKDOWN
    assert page.attributes <= {"rowspan", "colspan", "href", "title", "class", "start"}
    assert not any(
        address.lower().startswith(("javascript:", "data:", "vbscript:")) for address in page.addresses
    )


@settings(deadline=None)
@given(st.one_of(answers, st.text()))
def test_parsing_an_answer_twice_changes_nothing(answer: str) -> None:
    once = parse_answer(answer)
    again = parse_answer(once.markdown)
    assert (again.markdown, again.text, again.tables) == (once.markdown, once.text, once.tables)


@settings(deadline=None)
@given(st.text(st.characters()))
def test_whatever_the_answer_it_can_be_written(answer: str) -> None:
    parsed = parse_answer(answer)
    for text in (parsed.markdown, parsed.text):
        assert text.encode("utf-8").decode("utf-8") == text
        assert all(sign.isprintable() or sign in "\n\t\u200c\u200d" for sign in text)


@settings(deadline=None)
@given(st.text("ab <>&*_[]()#-|\n1.", max_size=60))
def test_no_letter_or_digit_of_plain_writing_is_lost(answer: str) -> None:
    """But for those that are a tag ("<b>"), a link's address, or a number that Markdown lists anew."""
    bare = answer.replace("<", " ").replace("](", " ").replace("1", "")
    kept = parse_answer(bare).text
    assert sum(map(str.isalnum, kept)) == sum(map(str.isalnum, bare))


# The prompt.


def test_the_system_prompt_is_short_and_names_every_mark() -> None:
    assert len(SYSTEM_PROMPT) < 1_400
    for mark in (
        "<table>",
        "rowspan",
        "colspan",
        "<handwriting>",
        "<stamp>",
        "<signature/>",
        "<figure>",
        "[illegible]",
    ):
        assert mark in SYSTEM_PROMPT
    facts, _ = split_facts(SYSTEM_PROMPT[SYSTEM_PROMPT.index("---") :])
    assert facts is not None
    assert (facts.language, facts.rotation_deg, facts.is_blank) == ("en", 0, False)


def test_the_user_text_depends_on_the_number_of_pages_alone() -> None:
    assert user_text(1) == user_text(1) != user_text(2) != user_text(3)
    assert "<!-- page 1 -->" in user_text(2)
    with pytest.raises(ValueError, match="a prompt needs a page"):
        user_text(0)


def test_the_version_changes_with_the_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompt_version()
    assert before == prompt_version()
    monkeypatch.setattr("pipeline.answers.prompt.SYSTEM_PROMPT", SYSTEM_PROMPT + " ")
    assert prompt_version() != before
