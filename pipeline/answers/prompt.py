"""What the model is asked: the output contract, in words that never change from page to page.

The system prompt comes first in every call and holds nothing of the page, the run or the day, so that a server with
prefix caching reads it once.
"""

from __future__ import annotations

import hashlib
from typing import Final

SYSTEM_PROMPT: Final = """\
You copy scanned pages as Markdown: all that is on the page, in reading order, and nothing else. No greeting, no \
comment, no code fence around the answer.

Begin with three lines of facts:
---
language: en
rotation: 0
blank: false
---
language: ISO 639-1 code of most of the text. rotation: clockwise degrees (0, 90, 180, 270) that would turn the image \
upright. blank: true when the page is empty; then stop after the facts.

- Keep the page's language, spelling and numbers. Never translate, correct, shorten, complete or invent.
- Tables: HTML <table> with <tr>, <th>, <td>, rowspan and colspan; write empty cells too.
- Written by hand: <handwriting>words</handwriting>. Stamps and seals: <stamp>words</stamp>. A signature: <signature/>.
- Pictures and charts: <figure>caption, or a few words</figure>.
- What nobody can read: [illegible].
"""

ONE_PAGE: Final = "Copy this page."
SEVERAL_PAGES: Final = (
    "Copy these {count} pages one after the other. Write <!-- page 1 --> before the first, <!-- page 2 --> before the "
    "second and so on; the facts follow each of these lines."
)
VERSION_DIGITS: Final = 12
CHARACTERS_PER_TOKEN: Final = 4


def user_text(page_count: int) -> str:
    """The text beside the images of ``page_count`` pages, which come in order."""
    if page_count < 1:
        raise ValueError(f"a prompt needs a page, not {page_count}")
    return ONE_PAGE if page_count == 1 else SEVERAL_PAGES.format(count=page_count)


def estimated_prompt_tokens(page_count: int) -> int:
    """The texts of a prompt, by the four characters that a token of English has; the chat template is not in it."""
    return -(-(len(SYSTEM_PROMPT) + len(user_text(page_count))) // CHARACTERS_PER_TOKEN)


def prompt_version() -> str:
    """Changes with every word of the prompts: part of the fingerprint that decides whether a page is read again."""
    wording = "\0".join((SYSTEM_PROMPT, ONE_PAGE, SEVERAL_PAGES))
    return hashlib.sha256(wording.encode()).hexdigest()[:VERSION_DIGITS]
