"""What a server said, fit for a message of ours: short, without the key and without the image."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pipeline.engines.qwen_vl.endpoint import VlmEndpoint

LONGEST = 300
"""Characters of a server's words that a message quotes."""

DATA_URL = re.compile(r"data:[a-z]+/[^\s\"']*", re.IGNORECASE)
ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{100,}")
"""No word is that long: it is a piece of the image, which some servers echo."""
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
MESSAGE_KEYS = ("error", "message", "detail", "msg")
"""Where servers put their words, from the outside in: OpenAI and vLLM, older vLLM, FastAPI."""


def words_of(body: bytes, endpoint: VlmEndpoint) -> str:
    """The body's message, "" for an empty body; an HTML page is named by its title."""
    text = body[:100_000].decode("utf-8", errors="replace").strip()
    if re.match(r"<(!doctype|html|\?xml|head|body)\b", text, re.IGNORECASE):
        title = TITLE.search(text)
        return shown_text(f"a web page titled “{title[1].strip()}”" if title else "a web page", endpoint)
    try:
        return shown_text(_message_in(json.loads(text)) or text, endpoint)
    except (ValueError, RecursionError):
        return shown_text(text, endpoint)


def error_words(document: Mapping[str, object], endpoint: VlmEndpoint) -> str:
    """What an error object in the body says; "" where there is none."""
    return shown_text(_message_in(document) or "", endpoint)


def shown_text(text: str, endpoint: VlmEndpoint) -> str:
    """One line of at most ``LONGEST`` characters, without data URLs, long encodings and the key."""
    text = text.replace(endpoint.api_key, "(key)") if len(endpoint.api_key) >= 8 else text
    text = ENCODED.sub("…", DATA_URL.sub("(image)", text))
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _message_in(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return _message_in(value[0])
    if isinstance(value, Mapping):
        found = (_message_in(value[key]) for key in MESSAGE_KEYS if value.get(key))
        return next((words for words in found if words), None)
    return None
