"""Text from files and their names, made safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` on one line, with everything a terminal would act on spelled out.

    Control characters, line breaks and characters that reorder others become escapes; bytes of a name that is
    not UTF-8 (surrogates, in Python) become ``\\xNN``.
    """
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
