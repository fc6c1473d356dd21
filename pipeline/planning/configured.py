"""The serving plan that a run keeps to."""

from __future__ import annotations

from pipeline.planning.gpus import gpu_named
from pipeline.planning.model_profiles import load_profile
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.planner import make_plan
from pipeline.planning.serving_plan import ServingPlan, read_plan
from pipeline.settings import VlmSettings

DEFAULT_GPU = "h100-80gb"


def load_plan(settings: VlmSettings) -> ServingPlan:
    """That of the plan file, or the profile's own on one H100, with the model's name and the concurrency of the
    settings where they have them. Raises SettingsError for a file that is no plan, ProfileInvalid for an unknown
    profile."""
    plan = _planned(settings)
    changes: dict[str, object] = {}
    if settings.model is not None:
        changes["model_id"] = settings.model
    if settings.concurrency is not None:
        changes["concurrency"] = settings.concurrency
    return plan.model_copy(update=changes)


def _planned(settings: VlmSettings) -> ServingPlan:
    if settings.plan_file is not None:
        return read_plan(settings.plan_file.expanduser())
    return make_plan(load_profile(settings.profile), PlanWishes(gpu=gpu_named(DEFAULT_GPU)))
