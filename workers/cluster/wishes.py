"""What a submitter may choose of how a submission is read. All else is the workers' own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from models.choices import RoutePolicy, TriageProfile
from pipeline.exports.formats import DEFAULT_FORMATS
from pipeline.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """None is the workers' own choice. ``languages`` is spelled as in the settings, ``eng+deu``. ``force`` reads pages
    again that are there."""

    route: RoutePolicy | None = None
    profile: TriageProfile | None = None
    languages: str | None = None
    engine: str | None = None
    formats: tuple[str, ...] = DEFAULT_FORMATS
    force: bool = False

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "formats": list(self.formats)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Wishes:
        """What a newer program adds is not known here, and passed over."""
        known = {name: value for name, value in (stored or {}).items() if name in cls.__slots__}
        route, profile = known.get("route"), known.get("profile")
        return cls(
            **{
                **known,
                "route": None if route is None else RoutePolicy(route),
                "profile": None if profile is None else TriageProfile(profile),
                "formats": tuple(known.get("formats", DEFAULT_FORMATS)),
            }
        )

    def settings(self, own: Settings) -> Settings:
        """``own`` with what was wished for. Raises pydantic's ValidationError, a ValueError, for a value that is
        none."""
        read = {"languages": self.languages, "engine": self.engine}
        return own.model_copy(
            update={
                "route": own.route if self.route is None else self.route,
                "read": _with(own.read, read),
                "triage": _with(own.triage, {"profile": self.profile}),
            }
        )


def _with(section: Any, wished: Mapping[str, object]) -> Any:
    """A section of the settings, checked again."""
    named = {name: value for name, value in wished.items() if value is not None}
    if not named:
        return section
    kept = {name: getattr(section, name) for name in type(section).model_fields}
    return type(section)(**{**kept, **named})
