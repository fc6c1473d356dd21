"""Which language a text in Latin script is in, by py3langid (BSD; its model ships in its wheel)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from models.errors import EngineUnavailable

LATIN_SCRIPT_LANGUAGES = (
    *("af", "az", "ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "id"),
    *("is", "it", "la", "lt", "lv", "ms", "mt", "nl", "no", "pl", "pt", "ro", "sk", "sl", "sq", "sv", "sw"),
    *("tl", "tr", "vi"),
)
"""ISO 639-1; English OCR of any of them still shows which one it is."""


class LangidIdentifier:
    """Loads its model, 0.6 s, with the first text; a page's text then takes under a millisecond."""

    def identify(self, text: str) -> tuple[str, float]:
        code, probability = self._model.classify(text)
        return str(code), float(probability)

    @cached_property
    def _model(self) -> Any:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError as error:
            raise EngineUnavailable("py3langid is missing; pip install py3langid") from error
        model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        model.set_languages(LATIN_SCRIPT_LANGUAGES)
        return model
