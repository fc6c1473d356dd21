"""Which languages a page is read in again, when its first reading, as English, turns out to be something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from models.text import Line
from pipeline.ports import LanguageIdentifier, PageRaster, ScriptReader, ScriptSight
from pipeline.scripts import Script, ScriptShare, own_share, script_share
from pipeline.signals.confidence import mean_confidence
from pipeline.text_sample import TextSample, text_sample
from pipeline.upright import turned

LATIN_SCRIPTS: Final = frozenset({"Latin", "Fraktur"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRules:
    """When a page is taken for one in another script than Latin. Measured on 150 real pages read by OCR and on made
    ones in 14 scripts.

    Asked are pages that read with a mean confidence below ``unsure_confidence``: other scripts 0.00 to 0.64, and of
    Latin ones handwriting, Fraktur and the worst scans. Tesseract's sight of the script is right from ``sure_sight``
    (wrong ones of real pages reach 3.2), that of the direction from ``sure_turn``. A reading proves its script by
    ``least_letters`` of all characters with ``least_letter_confidence`` (right ones of a sample from 0.62;
    handwriting read as Japanese reaches 0.61 there and 0.49 on the page), or ``clear_letters`` where the sight is
    sure (pointed Hebrew reads at 0.38). Letters of its own, ``least_own_letters`` and as sure, tell Japanese (kana
    0.7) from Chinese (0.5 and less). It has to be surer than the first by ``advantage``, or just surer where the
    sight is sure. Among a script's languages the first is left for one that is surer by ``language_advantage``
    (Ukrainian 0.15, wrong ones 0.06).
    """

    unsure_confidence: float = 0.7
    sure_sight: float = 5.0
    sure_turn: float = 8.0
    least_letters: float = 0.4
    least_letter_confidence: float = 0.6
    least_own_letters: float = 0.1
    clear_letters: float = 0.8
    advantage: float = 0.1
    language_advantage: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignScript:
    """``languages`` to read the page in after a clockwise turn of ``turn_deg``. ``script`` is None where no installed
    language is written in it."""

    script: Script | None
    languages: tuple[str, ...]
    turn_deg: int
    is_sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageChoice:
    """``latin`` is a model of all languages of Latin script, empty where none is installed. The identifier's
    answers on 170 real pages were right whenever it gave ``min_probability``; garbled and short texts stay far
    below it. ``scripts`` are the others that can be read."""

    identifier: LanguageIdentifier
    latin: tuple[str, ...]
    reader: ScriptReader
    scripts: tuple[Script, ...]
    min_probability: float = 0.9
    rules: ScriptRules = ScriptRules()

    def is_other_latin(self, lines: Iterable[Line]) -> bool:
        if not self.latin:
            return False
        language, probability = self.identifier.identify(" ".join(line.text for line in lines))
        return language != "en" and probability >= self.min_probability

    def foreign_script(self, lines: tuple[Line, ...], upright: PageRaster) -> ForeignScript | None:
        """The script of a page whose first reading is ``lines``; None for Latin, and for what cannot be told."""
        if mean_confidence(lines) >= self.rules.unsure_confidence:
            return None
        sight = self.reader.sight(upright.image, dpi=upright.dpi)
        is_turn_sure = sight is not None and sight.turn_confidence >= self.rules.sure_turn
        turn_deg = sight.turn_deg if sight is not None and is_turn_sure else 0
        candidates, is_sure = self._candidates(sight)
        if not candidates:
            return ForeignScript(script=None, languages=(), turn_deg=turn_deg, is_sure=True)
        image = turned(upright, rotation_deg=turn_deg, skew_deg=0.0).raster.image
        sample = text_sample(image, dpi=upright.dpi)
        if sample is None:
            return None
        readings = {script: self._glance(sample, script.languages[0]) for script in candidates}
        script = self._surest(readings, is_sure=is_sure)
        if script is None:
            return None
        language = self._language(sample, script, script_share(readings[script], script))
        return ForeignScript(script=script, languages=(language,), turn_deg=turn_deg, is_sure=is_sure)

    def is_better(self, lines: tuple[Line, ...], first: tuple[Line, ...], found: ForeignScript) -> bool:
        """Whether ``lines``, the page read in the script that was found, replace the first reading."""
        if found.script is None:
            return False
        needed = mean_confidence(first) + (0.0 if found.is_sure else self.rules.advantage)
        is_proof = self._is_proof(script_share(lines, found.script), is_sure=found.is_sure)
        return is_proof and mean_confidence(lines) >= needed

    def _candidates(self, sight: ScriptSight | None) -> tuple[tuple[Script, ...], bool]:
        """The scripts to try, and whether the sight alone tells; none where it does and nothing reads it."""
        if sight is None or sight.confidence < self.rules.sure_sight or sight.script in LATIN_SCRIPTS:
            return self.scripts, False
        return tuple(script for script in self.scripts if script.name == sight.script), True

    def _surest(self, readings: Mapping[Script, tuple[Line, ...]], *, is_sure: bool) -> Script | None:
        """The script that reads with the most confidence; one that shows letters of its own, such as kana, goes
        first."""
        rules = self.rules
        shares = {script: script_share(lines, script) for script, lines in readings.items()}
        proven = [script for script, share in shares.items() if self._is_proof(share, is_sure=is_sure)]
        own = {script: own_share(readings[script], script) for script in proven}
        marked = [
            script
            for script, share in own.items()
            if share.letters >= rules.least_own_letters and share.confidence >= rules.least_letter_confidence
        ]
        return max(marked or proven, key=lambda script: shares[script].confidence, default=None)

    def _language(self, sample: TextSample, script: Script, share: ScriptShare) -> str:
        best, needed = script.languages[0], share.confidence + self.rules.language_advantage
        for language in script.languages[1:]:
            other = script_share(self._glance(sample, language), script)
            if other.confidence >= needed and other.letters >= self.rules.least_letters:
                best, needed = language, other.confidence
        return best

    def _glance(self, sample: TextSample, language: str) -> tuple[Line, ...]:
        return self.reader.glance(sample.image, dpi=sample.dpi, languages=(language,))

    def _is_proof(self, share: ScriptShare, *, is_sure: bool) -> bool:
        rules = self.rules
        if is_sure and share.letters >= rules.clear_letters:
            return True
        return share.letters >= rules.least_letters and share.confidence >= rules.least_letter_confidence
