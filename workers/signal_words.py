"""Signals in words, for those who read reports rather than code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.signals.names import SignalName

SCORE_SIGNALS: Final[Mapping[str, str]] = {
    SignalName.CONFIDENCE_P05: "confidence that a twentieth of the characters stay under",
    SignalName.CONFIDENCE_P10: "confidence that a tenth of the characters stay under",
    SignalName.CONFIDENCE_MEDIAN: "median confidence of the characters",
    SignalName.UNSURE_CHARACTER_SHARE: "share of characters read with a confidence under 0.8",
    SignalName.UNSETTLED_CHARACTER_SHARE: "share of characters that neither engine read with certainty",
    SignalName.ENGINE_AGREEMENT: "share of words on which two OCR engines agree",
    SignalName.ODD_WORD_SHARE: "share of words that no language has",
    SignalName.UNCOVERED_INK_SHARE: "share of the text-like ink that no word accounts for",
    SignalName.UNCOVERED_LINE_SHARE: "share of the ink in lines that no word accounts for",
    SignalName.STROKE_IRREGULARITY: "irregularity of the strokes that were read badly",
    SignalName.HANDWRITING_LIKENESS: "how badly read and how unlike type the strokes are",
    SignalName.HANDWRITING_PROBABILITY: "probability that a hand wrote the likeliest area",
    SignalName.HANDWRITING_INK: "handwritten ink, in squares of the text height",
    SignalName.TABLE_RULED_CELLS: "cells of a ruled table",
    SignalName.TABLE_ALIGNED_ROWS: "rows of a table without rules",
    SignalName.TABLE_LAYOUT_CONFIDENCE: "the layout network's confidence in a table",
    SignalName.STAMP_STRENGTH: "completeness of a stamp's ring or frame",
    SignalName.STAMP_WORDS: "words of a rubber stamp with a date beside them",
    SignalName.PAGE_IMAGE_DAMAGED: "parts of the page's image are damaged or missing",
    SignalName.SCRIPT_UNREAD: "the page is in a script of which no language is installed",
    SignalName.INK_SHARE: "share of the page that is inked",
    SignalName.PICTURE_CONTRAST: "contrast of ink and paper",
    SignalName.PICTURE_SHARPNESS: "steepness of the ink's edges",
    SignalName.PICTURE_NOISE: "noise of the paper",
    SignalName.TEXT_HEIGHT_PX: "height of the small print, pixels",
    SignalName.BLANK: "blank page",
    SignalName.FORCED_VLM: "every page was asked to go to the model (--route vlm)",
    SignalName.FORCED_OCR: "no page was to go to the model (--route ocr)",
    SignalName.AUDIT: "accepted, and drawn at random to see what triage misses",
    SignalName.NEEDS_VLM_PROBABILITY: "probability that the page needs the model",
}

TEXT_LAYER_SIGNALS: Final[Mapping[str, str]] = {
    "text_layer_letters": "letters and digits of the text layer that stand on ink",
    "text_layer_words_on_ink": "share of the text layer's words that stand on ink",
    "text_layer_unmapped_share": "share of glyphs whose font has no map to Unicode",
    "text_layer_bad_share": "share of replacement, private use and control characters",
    "text_layer_letter_share": "share of letters among all characters",
    "text_layer_shape_agreement": "share of glyphs in fonts that draw what they say",
    "text_layer_vowelless_share": "share of long words without a vowel",
    "text_layer_colliding_share": "share of words printed over other words",
    "text_layer_uncovered_text_share": "share of text-like rows without a word in the text layer",
    "text_layer_uncovered_scan_share": "share of a scanned picture's ink without a word in the text layer",
    "text_layer_hidden_fit": "share of hidden words that lie where the ink is",
    "text_layer_hidden_shape": "share of hidden words whose letters are as high as the ink",
    "text_layer_hidden_plausible": "share of hidden words that are spelled like words",
    "text_layer_frame_error": "difference between the page's shape in pixels and in points",
}

SIGNALS: Final[Mapping[str, str]] = {**SCORE_SIGNALS, **TEXT_LAYER_SIGNALS}


def signal_in_words(signal: str) -> str:
    """A signal of an older or newer policy, which has no words here, is called by its name."""
    return SIGNALS.get(signal, signal.replace("_", " "))
