"""Cards that vLLM can be planned for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """``usable_gib`` is what PyTorch reports as the card's total, a little less than the name says, rounded down.
    Without ``computes_fp8`` vLLM keeps FP8 weights as they are and computes in BF16 (Marlin, weight-only)."""

    name: str
    usable_gib: float
    computes_fp8: bool

    @property
    def usable_bytes(self) -> int:
        return int(self.usable_gib * 2**30)


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu(name="h100-80gb", usable_gib=79.1, computes_fp8=True),
        Gpu(name="h100-94gb", usable_gib=93.0, computes_fp8=True),
        Gpu(name="h200-141gb", usable_gib=139.7, computes_fp8=True),
        Gpu(name="a100-80gb", usable_gib=79.1, computes_fp8=False),
        Gpu(name="a100-40gb", usable_gib=39.3, computes_fp8=False),
        Gpu(name="l40s-48gb", usable_gib=44.3, computes_fp8=True),
        Gpu(name="l4-24gb", usable_gib=22.0, computes_fp8=True),
        Gpu(name="rtx-4090-24gb", usable_gib=23.5, computes_fp8=True),
    )
}


def gpu_named(name: str) -> Gpu:
    """Raises ValueError, naming the cards known, for any other name."""
    try:
        return GPUS[name]
    except KeyError as error:
        raise ValueError(f"unknown card {name!r}; use one of {', '.join(GPUS)}") from error
