"""What stands around a transcript in an answer, and comes off: reasoning, the outer fence, greetings and offers."""

from __future__ import annotations

import re
from typing import Final

from pipeline.answers.phrases import (
    BLANK_PAGE,
    FAREWELL,
    INTERJECTION,
    LEAD_IN,
    MOST_CHAT_CHARS,
    OFFER,
    REMARK,
    plain_line,
)

WRAPPER_LANGUAGES: Final = frozenset({"markdown", "md", "gfm", "html", "text", "txt", "plaintext", "plain"})
"""A fence marked so is around the answer, not on the page. A bare one may be either."""

MOST_PREFACE_CHARS: Final = 300

_REASONING: Final = ("think", "thinking", "reasoning", "thought")
_SPECIAL_TOKEN: Final = re.compile(r"<\|[A-Za-z0-9_]{1,40}\|>")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*")
_RULE_LINE: Final = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")


def without_reasoning(text: str) -> str:
    """``text`` after the model's thoughts. Servers whose template opens the block send its end alone; a block that
    never ends was cut off by the token limit, and is all there is."""
    for name in _REASONING:
        opening, closing = f"<{name}>", f"</{name}>"
        lower = text.lower()
        first, end = lower.find(opening), lower.rfind(closing)
        if end >= 0 and (first < 0 or not text[:first].strip() or end < first):
            text = text[end + len(closing) :]
        elif first >= 0 and end < 0 and not text[:first].strip():
            text = ""
    return text


def without_special_tokens(text: str) -> str:
    """``text`` without the tokens that end turns or mark boxes, which some servers leave in."""
    return _SPECIAL_TOKEN.sub("", text)


def without_fence(text: str) -> str:
    """``text`` without the fence around it, whose end may be missing. Fences within belong to the page; what follows
    the outer one stays, unless it is chat.

    A bare fence comes off only where it holds the whole answer: elsewhere it is a listing at the top of the page.
    """
    lines = text.split("\n")
    opening = _FENCE.fullmatch(lines[0])
    language = "" if opening is None else opening[2].lower()
    if opening is None or (language and language not in WRAPPER_LANGUAGES):
        return text
    ends = _fence_ends(lines, opening[1])
    if not language and (len(ends) > 1 or (ends and ends[0] != len(lines) - 1)):
        return text
    end = ends[-1] if len(ends) % 2 else len(lines)
    return "\n".join([*lines[1:end], "", _without_chat(lines[end + 1 :])])


def without_preface(text: str) -> str:
    """``text`` from its outer fence on, where nothing but one short paragraph that ends in a colon comes before, and
    nothing but chat after."""
    before, mark, after = text.partition("\n```")
    language = after.partition("\n")[0].strip().lower()
    if not mark or language not in WRAPPER_LANGUAGES or len(before) > MOST_PREFACE_CHARS:
        return text
    fenced = "```" + after
    ends = _fence_ends(fenced.split("\n"), "```")
    is_all = len(ends) % 2 == 0 or not _without_chat(fenced.split("\n")[ends[-1] + 1 :])
    is_preface = before.rstrip().endswith((":", ":")) and not re.search(
        r"\n\n|^ {0,3}[`~]{3}", before.strip()
    )
    return fenced if is_all and is_preface else text


def _without_chat(lines: list[str]) -> str:
    """What stands below the fence, but for a farewell."""
    return without_tail("\n\n" + "\n".join(lines).strip(), is_chat=True).strip()


def _fence_ends(lines: list[str], marks: str) -> list[int]:
    """The bare fences after the first line that close none opened within."""
    ends, depth = [], 0
    for number, line in enumerate(lines[1:], start=1):
        fence = _FENCE.fullmatch(line)
        if fence is None or not fence[1].startswith(marks):
            continue
        if fence[2]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            ends.append(number)
    return ends


def without_lead_in(text: str) -> str:
    """``text`` without a first line that introduces the transcript."""
    first, _, rest = text.partition("\n")
    line = plain_line(first[: MOST_CHAT_CHARS + 1])
    if INTERJECTION.fullmatch(line):
        after = without_lead_in(rest.lstrip())
        return text if after == rest.lstrip() else after
    if len(first) > MOST_CHAT_CHARS or not LEAD_IN.fullmatch(line):
        return text
    return rest


def without_first_rule(text: str) -> str:
    """``text`` without a rule on its first line, which parted it from a greeting."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if _RULE_LINE.fullmatch(first) else text


def without_tail(text: str, *, is_chat: bool) -> str:
    """``text`` without a last paragraph that offers more work or remarks on this one. With ``is_chat``, where other
    chat was found, a mere farewell goes as well."""
    before, mark, last = text.rstrip().rpartition("\n\n")
    paragraph = plain_line(" ".join(last[: MOST_CHAT_CHARS + 1].split()))
    if not mark or len(last) > MOST_CHAT_CHARS:
        return text
    if not (OFFER.search(paragraph) or REMARK.match(paragraph) or (is_chat and FAREWELL.match(paragraph))):
        return text
    head, _, rule = before.rpartition("\n")
    return head if _RULE_LINE.fullmatch(rule) else before


def says_blank(text: str) -> bool:
    """Whether the whole of ``text`` says that nothing is on the page."""
    return len(text) <= MOST_CHAT_CHARS and BLANK_PAGE.fullmatch(plain_line(text).strip(" .!")) is not None
