"""What a submitter chooses of how pages are read. Importing this is cheap."""

from __future__ import annotations

from enum import StrEnum


class RoutePolicy(StrEnum):
    """What the submitter asked for: triage decides, never the VLM, or always the VLM."""

    AUTO = "auto"
    OCR = "ocr"
    VLM = "vlm"


class TriageProfile(StrEnum):
    """How readily pages go to the VLM: each profile is a probability in the policy file."""

    THRIFTY = "thrifty"
    BALANCED = "balanced"
    THOROUGH = "thorough"
