"""On whose account a run is, and at which prices."""

from __future__ import annotations

import getpass
from typing import Final

from models.errors import SettingsError
from pipeline.chargeback.cost_centres import RULE, cost_centre_name
from pipeline.chargeback.entries import Account, Payer
from pipeline.chargeback.price_book import load_price_book
from pipeline.planning.serving_plan import ServingPlan
from pipeline.settings import ChargebackSettings

MOST_LETTERS: Final = 100
"""Of a login name: the environment may name anything."""


def open_account(cost_centre: str | None, settings: ChargebackSettings, plan: ServingPlan) -> Account:
    """That of the cost centre, or of the settings' default. Raises SettingsError where there is neither, or the name
    is none, and PriceBookInvalid."""
    payer = Payer(
        cost_centre=paying_cost_centre(cost_centre, settings), submitter=login_name(), submission_id=None
    )
    return Account(
        payer=payer,
        price_book=load_price_book(settings.price_book_file),
        model_id=plan.model_id,
    )


def paying_cost_centre(cost_centre: str | None, settings: ChargebackSettings) -> str:
    """The one that is named, or else that of the settings. Raises SettingsError."""
    named = settings.default_cost_centre if cost_centre is None else cost_centre
    if named is None:
        raise SettingsError(f"nobody is named who pays for this run; give --cost-centre ({RULE})")
    return cost_centre_name(named)


def login_name() -> str | None:
    """None where the system has no name for its user, as in a container that runs under a bare number."""
    try:
        return getpass.getuser()[:MOST_LETTERS]
    except (KeyError, OSError, ImportError):
        return None
