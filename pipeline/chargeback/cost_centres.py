"""Cost centres: a team, or a project of a team. Importing this is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from models.errors import SettingsError
from pipeline.chargeback.echoes import echoed

DEFAULT_COST_CENTRE: Final = "default"
MOST_CHARACTERS: Final = 200
RULE: Final = (
    f"write TEAM or TEAM/PROJECT, printable, at most {MOST_CHARACTERS} characters, no space at their ends"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Who pays for what a run does, and who started it. ``submitter`` is a login name."""

    cost_centre: str
    submitter: str | None
    submission_id: int | None

    @property
    def team(self) -> str:
        return team_of(self.cost_centre)


def cost_centre_name(name: str) -> str:
    """The name itself, in the case it was written in. Raises SettingsError for one that breaks the rule."""
    parts = name.split("/")
    is_spelled = all(part and part == part.strip() for part in parts) and name.isprintable()
    if len(parts) > 2 or not is_spelled or len(name) > MOST_CHARACTERS:
        raise SettingsError(f"{echoed(name)} is no cost centre; {RULE}")
    return name


def team_of(cost_centre: str) -> str:
    return cost_centre.partition("/")[0]


def most_of_one_team(places: int) -> int:
    """Of places that all teams share: a quarter is out of any one's reach, where there are several."""
    return places - places // 4


def payers(cost_centre: str) -> tuple[str, ...]:
    """Those whose budgets hold for it: the team, and then the project where it is one."""
    return tuple(dict.fromkeys((team_of(cost_centre), cost_centre)))
