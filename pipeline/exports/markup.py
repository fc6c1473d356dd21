"""Text within XML and HTML, and what both say of who wrote them."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Final
from xml.sax.saxutils import escape

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

WORDS_OF_VLM_PAGES: Final = (
    "On pages of the route vlm the words are those of the reader on the CPU, which has their boxes; "
    "the text of the vision-language model is in the Markdown and JSON."
)


def escaped(text: str) -> str:
    """For an element or an attribute in double quotes; what XML 1.0 cannot hold is U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text), {'"': "&quot;"})


def program_version() -> str:
    return metadata.version("doctriage")
