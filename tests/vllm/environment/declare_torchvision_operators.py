"""Lets ``import torchvision`` pass beside a torch without CUDA. Loaded by a ``.pth`` file at every start of Python.

The torchvision wheel is a CUDA build whose compiled operators cannot load here. torchvision itself then describes the
shapes of two of them, which fails unless they are declared. Qwen-VL's image processors call neither.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from types import ModuleType

OPERATORS = (
    ("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    ("torchvision::qnms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
)


class BeforeTorchvision(importlib.abc.MetaPathFinder):
    """Finds nothing; declares the operators when torchvision is first asked for."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            declare_operators()


def declare_operators() -> None:
    import torch

    for name, schema in OPERATORS:
        torch.library.define(name, schema)


sys.meta_path.insert(0, BeforeTorchvision())
