"""Places of the server, and who gets them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack

import pytest

from models.errors import TooManyAtOnce
from workers.api.parts import Gate, WaitingGate


def test_one_team_does_not_take_every_place() -> None:
    gate = Gate(8, "pictures")
    with ExitStack() as inside:
        for _ in range(6):
            inside.enter_context(gate.entered("harbour"))
        with pytest.raises(TooManyAtOnce, match="of one team 6"), gate.entered("harbour"):
            pass
        for _ in range(2):
            inside.enter_context(gate.entered("quay"))
        with pytest.raises(TooManyAtOnce), gate.entered("mill"):
            pass
    with gate.entered("harbour"):
        pass


@pytest.mark.parametrize(("team", "most"), [("harbour", 1), (None, 1), (None, 4)])
def test_whoever_is_alone_has_them_all(team: str | None, most: int) -> None:
    gate = Gate(most, "quotes")
    with ExitStack() as inside:
        for _ in range(most):
            inside.enter_context(gate.entered(team))
        with pytest.raises(TooManyAtOnce), gate.entered(team):
            pass


def test_a_free_place_is_for_the_team_that_waited_for_one_longest() -> None:
    came: list[str] = []

    async def enter(gate: WaitingGate, team: str) -> None:
        async with gate.entered(team):
            came.append(team)

    async def crowd() -> None:
        gate = WaitingGate(1, "outputs", wait_s=60)
        async with asyncio.TaskGroup() as tasks, gate.entered("harbour"):
            for team in ("harbour", "harbour", "harbour", "quay", "mill", "quay"):
                tasks.create_task(enter(gate, team))
            await asyncio.sleep(0)

    asyncio.run(crowd())
    assert came == ["quay", "mill", "harbour", "quay", "harbour", "harbour"]


def test_a_team_that_holds_its_share_waits_and_others_come_in() -> None:
    async def crowd() -> None:
        gate = WaitingGate(4, "uploads", wait_s=0.01)
        async with AsyncExitStack() as inside:
            for _ in range(3):
                await inside.enter_async_context(gate.entered("harbour"))
            with pytest.raises(TooManyAtOnce):
                await inside.enter_async_context(gate.entered("harbour"))
            await inside.enter_async_context(gate.entered("quay"))
            with pytest.raises(TooManyAtOnce):
                await inside.enter_async_context(gate.entered("mill"))
        async with gate.entered("harbour"), gate.entered("harbour"), gate.entered("harbour"):
            pass

    asyncio.run(crowd())
