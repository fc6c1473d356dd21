"""Settings: nested, frozen, built once at the edge. A stage receives the part it uses; an unknown key fails at start."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from models.page import RoutePolicy
from pipeline.visual_tokens import VisualTokenBudget, model_family


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IntakeSettings(Section):
    max_bytes: int = Field(default=512 * 2**20, gt=0)
    max_pages: int = Field(default=5_000, gt=0)
    max_image_pixels: int = Field(default=250_000_000, gt=0)


class RasteriseSettings(Section):
    dpi: int = Field(default=200, ge=50, le=600)
    max_page_pixels: int = Field(default=25_000_000, gt=0)
    pages_per_call: int = Field(default=4, ge=1, le=64)
    timeout_s: float = Field(default=60, gt=0)


class ReadSettings(Section):
    engine: Literal["tesseract", "paddleocr"] = "tesseract"
    languages: tuple[str, ...] = ("eng",)
    ocr_timeout_s: float = Field(default=120, gt=0)


class VisualTokenSettings(Section):
    """Which model's cells price the page, and the pixel budget one page may take."""

    model_family: str = "qwen2.5-vl"
    min_pixels: int = 200_704
    max_pixels: int = 1_756_160

    @model_validator(mode="after")
    def _bounds_make_a_budget(self) -> Self:
        _ = self.budget
        return self

    @property
    def budget(self) -> VisualTokenBudget:
        return VisualTokenBudget(
            family=model_family(self.model_family), min_pixels=self.min_pixels, max_pixels=self.max_pixels
        )


class ExecutorSettings(Section):
    jobs: int | None = Field(default=None, ge=1)
    page_timeout_s: float = Field(default=300, gt=0)
    max_pages_per_worker: int = Field(default=500, gt=0)
    max_attempts: int = Field(default=2, ge=1)


class Settings(BaseSettings):
    """Read from ``DOCTRIAGE_…`` variables (``DOCTRIAGE_READ__ENGINE=paddleocr``) and from the command line."""

    model_config = SettingsConfigDict(
        env_prefix="DOCTRIAGE_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("doctriage")))
    route: RoutePolicy = RoutePolicy.AUTO
    intake: IntakeSettings = IntakeSettings()
    rasterise: RasteriseSettings = RasteriseSettings()
    read: ReadSettings = ReadSettings()
    visual_tokens: VisualTokenSettings = VisualTokenSettings()
    executor: ExecutorSettings = ExecutorSettings()
