"""The names under which signals are stored, shown and compared with thresholds."""

from __future__ import annotations

from enum import StrEnum


class SignalName(StrEnum):
    CONFIDENCE_P05 = "confidence_p05"
    CONFIDENCE_P10 = "confidence_p10"
    CONFIDENCE_MEDIAN = "confidence_median"
    UNSURE_CHARACTER_SHARE = "unsure_character_share"
    ODD_WORD_SHARE = "odd_word_share"
    ENGINE_AGREEMENT = "engine_agreement"
    UNSETTLED_CHARACTER_SHARE = "unsettled_character_share"
    UNCOVERED_INK_SHARE = "uncovered_ink_share"
    UNCOVERED_LINE_SHARE = "uncovered_line_share"
    STROKE_IRREGULARITY = "stroke_irregularity"
    HANDWRITING_LIKENESS = "handwriting_likeness"
    HANDWRITING_PROBABILITY = "handwriting_probability"
    HANDWRITING_INK = "handwriting_ink"
    TABLE_RULED_CELLS = "table_ruled_cells"
    TABLE_ALIGNED_ROWS = "table_aligned_rows"
    TABLE_LAYOUT_CONFIDENCE = "table_layout_confidence"
    STAMP_STRENGTH = "stamp_strength"
    STAMP_WORDS = "stamp_words"
    PAGE_IMAGE_DAMAGED = "page_image_damaged"
    SCRIPT_UNREAD = "script_unread"
    INK_SHARE = "ink_share"
    PICTURE_CONTRAST = "picture_contrast"
    PICTURE_SHARPNESS = "picture_sharpness"
    PICTURE_NOISE = "picture_noise"
    TEXT_HEIGHT_PX = "text_height_px"
    BLANK = "blank"
    FORCED_VLM = "forced_vlm"
    FORCED_OCR = "forced_ocr"
    AUDIT = "audit"
    NEEDS_VLM_PROBABILITY = "needs_vlm_probability"
