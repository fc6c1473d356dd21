"""What all processes of a pool take from their settings, and what a submission adds to it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.chargeback.entries import Account, Payer
from pipeline.chargeback.price_book import PriceBook, load_price_book
from pipeline.planning.configured import load_plan
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy, load_policy
from pipeline.settings import Settings
from workers.bootstrap import build_engines
from workers.messages import EngineBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    settings: Settings
    policy: Policy
    plan: ServingPlan
    price_book: PriceBook
    build_engines: EngineBuilder = build_engines

    def account(self, payer: Payer) -> Account:
        return Account(payer=payer, price_book=self.price_book, model_id=self.plan.model_id)


def load_deployment(settings: Settings) -> Deployment:
    """Raises SettingsError and PriceBookInvalid. The home of its settings is an absolute path."""
    return Deployment(
        settings=settings.model_copy(update={"home": settings.home.absolute()}),
        policy=load_policy(settings.triage.policy_file),
        plan=load_plan(settings.vlm),
        price_book=load_price_book(settings.chargeback.price_book_file),
    )
