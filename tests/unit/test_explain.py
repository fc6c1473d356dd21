"""A page explained in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from models.errors import PageNotFound
from models.page import Route
from pipeline.signals.names import SignalName
from workers.explain import (
    ROUTES_IN_WORDS,
    ExplainedPage,
    PageJson,
    ReasonJson,
    explanation,
    measured_signals,
    page_of_output,
    reason_in_words,
)
from workers.signal_words import SCORE_SIGNALS, signal_in_words


def page_json(**changes: object) -> PageJson:
    page: dict[str, object] = {
        "page_number": 3,
        "route": "ocr_degraded",
        "read_by": "tesseract",
        "width_px": 1654,
        "height_px": 2339,
        "dpi": 200.0,
        "rotation_deg": 90,
        "skew_deg": -1.25,
        "confidence": 0.8125,
        "triage": {
            "escalate": True,
            "reasons": [{"signal": "some_share", "measured": 0.3, "threshold": 0.15}],
            "policy_version": "7",
        },
        "visual_tokens_if_vlm": 2184,
        "elapsed_s": 1.26,
    }
    return cast("PageJson", page | changes)


def explained(**changes: object) -> str:
    page = ExplainedPage(source="a/inv.pdf", document_id="ab" * 32, page=page_json(**changes))
    return "\n".join(explanation(page))


def test_says_route_engine_confidence_size_tokens_and_reasons() -> None:
    said = explained()
    assert "a/inv.pdf, page 3 (document abababababababab)" in said
    assert "route: ocr_degraded: needs the vision-language model and did not get it" in said
    assert "read by: tesseract, in 1.3 s" in said
    assert "confidence: 0.812" in said
    assert "1654 x 2339 px at 200 dpi, turned 90 degrees clockwise to read, skewed by -1.2 degrees" in said
    assert "2,184" in said
    assert "some share: 0.3 is above the limit of 0.15 (some_share)" in said


@pytest.mark.parametrize(
    ("read_by", "kept"),
    [("tesseract", "the OCR text was kept"), ("text_layer", "the text layer's text was kept")],
)
def test_the_text_that_was_kept_is_called_after_its_reader(read_by: str, kept: str) -> None:
    assert f"did not get it; {kept}\n" in explained(read_by=read_by)


def test_a_blank_page_is_called_so_once() -> None:
    assert "route: blank: no ink" in explained(route="blank")


def test_a_page_without_reasons_says_so() -> None:
    triage = {"escalate": False, "reasons": [], "policy_version": "7"}
    said = explained(route="text_layer", triage=triage, confidence=None, rotation_deg=0, skew_deg=0.0)
    assert "neither a rule nor the probability" in said
    assert "confidence: none" in said
    assert "turned" not in said
    assert "skewed" not in said


def test_reasons_that_were_overridden_are_told_apart() -> None:
    reasons = page_json()["triage"]["reasons"]
    said = explained(route="ocr", triage={"escalate": False, "reasons": reasons, "policy_version": "7"})
    assert "though the page was not sent" in said


@pytest.mark.parametrize(
    ("measured", "threshold", "words"),
    [
        (0.2, 0.5, "0.2 is below the limit of 0.5"),
        (0.61234, 0.5, "0.6123 is above the limit of 0.5"),
        (1.0, 1.0, "1 reaches the limit of 1"),
    ],
)
def test_a_reason_says_on_which_side_the_value_lies(measured: float, threshold: float, words: str) -> None:
    reason = ReasonJson(signal="a_signal", measured=measured, threshold=threshold)
    assert words in reason_in_words(reason)


def test_signals_that_do_not_apply_have_no_number() -> None:
    signals = [{"name": "ink_share", "measured": 0.0412}, {"name": "ocr_median", "measured": None}]
    said = list(measured_signals(page_json(signals=signals)))
    assert said[0].endswith("0.0412 (ink_share)")
    assert said[1].endswith("does not apply (ocr_median)")


def test_a_page_sent_on_demand_has_no_number() -> None:
    reason = ReasonJson(signal="forced_vlm", measured=1.0, threshold=1.0)
    assert reason_in_words(reason) == "every page was asked to go to the model (--route vlm)"


def test_the_signals_behind_the_probability_are_told_below_it() -> None:
    reasons = [
        ReasonJson(signal="stamp_strength", measured=0.95, threshold=0.9),
        ReasonJson(signal="needs_vlm_probability", measured=0.81, threshold=0.5),
        ReasonJson(signal="confidence_p10", measured=0.31, threshold=0.64),
    ]
    said = explained(triage={"escalate": True, "reasons": reasons, "policy_version": "7"})
    assert "  - completeness of a stamp's ring or frame: 0.95 is above the limit of 0.9" in said
    assert "  - probability that the page needs the model: 0.81 is above the limit of 0.5" in said
    assert "    - raised by confidence that a tenth" in said
    assert "0.31, below the neutral 0.64 (confidence_p10)" in said


def test_every_signal_of_the_score_has_words() -> None:
    assert set(SCORE_SIGNALS) == set(SignalName)
    assert signal_in_words("a_signal_of_tomorrow") == "a signal of tomorrow"


def test_every_route_has_words() -> None:
    assert set(ROUTES_IN_WORDS) == set(Route)


def test_a_page_is_found_in_the_output(tmp_path: Path) -> None:
    output = tmp_path / "inv.pdf.json"
    output.write_text(json.dumps({"source": "inv.pdf", "document_id": "cd" * 32, "pages": [page_json()]}))
    found = page_of_output(output, 3)
    assert (found.source, found.document_id, found.page["route"]) == ("inv.pdf", "cd" * 32, "ocr_degraded")
    with pytest.raises(PageNotFound, match="no page 4"):
        page_of_output(output, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"error": {"code": "page_timed_out", "message": "took longer than 300 s"}},
            "took longer than 300 s",
        ),
        ({"error": None}, None),
    ],
)
def test_a_page_that_failed_says_why_instead(
    changes: dict[str, object], message: str | None, tmp_path: Path
) -> None:
    output = tmp_path / "inv.pdf.json"
    page = page_json(**changes)
    output.write_text(json.dumps({"source": "inv.pdf", "document_id": "cd" * 32, "pages": [page]}))
    if message is None:
        assert page_of_output(output, 3).page == page
    else:
        with pytest.raises(PageNotFound, match=message):
            page_of_output(output, 3)


def test_a_page_with_less_than_an_explanation_needs_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "inv.pdf.json"
    output.write_text(json.dumps({"source": "a", "document_id": "b", "pages": [{"page_number": 1}]}))
    with pytest.raises(PageNotFound, match="ingest the document again"):
        page_of_output(output, 1)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pages": [{}]}', '{"pages": 3}', "null", "\x00"])
def test_other_json_is_not_taken_for_an_output(content: str, tmp_path: Path) -> None:
    other = tmp_path / "package.json"
    other.write_text(content)
    with pytest.raises(PageNotFound, match=r"package\.json: no output of doctriage"):
        page_of_output(other, 1)


def test_a_reason_says_how_many_places_on_the_page_it_comes_from() -> None:
    triage = {
        "escalate": True,
        "reasons": [
            {"signal": "handwriting_probability", "measured": 0.91, "threshold": 0.8},
            {"signal": "odd_word_share", "measured": 0.4, "threshold": 0.35},
        ],
        "policy_version": "7",
    }
    regions = [
        {"kind": "handwriting", "box": [0, 0, 827, 117]},
        {"kind": "handwriting", "box": [0, 1000, 827, 1117]},
        {"kind": "stamp", "box": [0, 0, 500, 500]},
    ]
    lines = explained(triage=triage, regions=regions).splitlines()

    assert lines[-2].endswith("(handwriting_probability): 2 regions, 5 % of the page")
    assert lines[-1].endswith("(odd_word_share)")
