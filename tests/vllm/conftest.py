"""Tests against a real vLLM. ``make test-vllm`` builds what they need; an ordinary ``pytest`` leaves them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vllm.server import PROFILES, VllmEnvironment, VllmServer, running_server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vllm-venv",
        type=Path,
        default=Path(".venv-vllm"),
        help="The environment that make test-vllm built.",
    )


@pytest.fixture(scope="session")
def environment(request: pytest.FixtureRequest) -> VllmEnvironment:
    folder: Path = request.config.getoption("--vllm-venv")
    built = VllmEnvironment(folder=folder.absolute())
    missing = [path for path in (built.python, *map(built.checkpoint, PROFILES)) if not path.exists()]
    if missing:
        pytest.fail(f"{missing[0]} is missing; run make test-vllm, which builds it", pytrace=False)
    return built


@pytest.fixture(scope="session", params=PROFILES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def server(environment: VllmEnvironment, family: str) -> Iterator[VllmServer]:
    """One at a time: the tests of one family come first, then those of the other."""
    with running_server(environment, family) as running:
        yield running
