"""The ledger's tokens against what a service counted."""

from __future__ import annotations

from pipeline.chargeback.reconciliation import (
    BookedTokens,
    CounterReading,
    Reconciliation,
    TokenCounters,
    explanations,
    reconcile,
)


def reading(at_s: float, **models: tuple[int, int] | TokenCounters) -> CounterReading:
    counters = {
        name: one
        if isinstance(one, TokenCounters)
        else TokenCounters(prompt_tokens=one[0], completion_tokens=one[1])
        for name, one in models.items()
    }
    return CounterReading(read_at_s=at_s, url="http://gpu:8000/metrics", models=counters)


def booked(prompt: int, completion: int, model: str = "qwen", **counts: int) -> BookedTokens:
    return BookedTokens(model_id=model, prompt_tokens=prompt, completion_tokens=completion, **counts)


def told(reconciliation: Reconciliation) -> str:
    return "\n".join(explanations(reconciliation, 0))


BEFORE = reading(100.0, qwen=(1_000, 200))


def test_what_the_counters_grew_by_is_what_was_booked() -> None:
    result = reconcile(BEFORE, reading(200.0, qwen=(3_330, 610)), [booked(2_330, 410)])
    assert result.is_within(0)
    [model] = result.models
    assert (model.counted_prompt_tokens, model.counted_completion_tokens) == (2_330, 410)
    assert told(result) == ""


def test_a_difference_is_named_with_its_sign_and_tolerated_up_to_a_limit() -> None:
    result = reconcile(BEFORE, reading(200.0, qwen=(3_333, 605)), [booked(2_330, 410)])
    [model] = result.models
    assert (model.prompt_tokens, model.completion_tokens) == (3, -5)
    assert [result.is_within(tolerance) for tolerance in (0, 4, 5)] == [False, False, True]
    assert "another client" in told(result)
    assert "another replica" in told(result)
    assert list(explanations(result, 5)) == []


def test_models_that_one_side_alone_knows_are_compared_with_nothing() -> None:
    result = reconcile(BEFORE, reading(200.0, qwen=(1_000, 200), other=(7, 0)), [booked(5, 1, "lost")])
    assert [(model.model_id, model.prompt_tokens) for model in result.models] == [
        ("lost", -5),
        ("other", 7),
        ("qwen", 0),
    ]


def test_counters_that_fell_or_began_anew_are_a_restart_and_counted_from_nothing() -> None:
    fell = reconcile(BEFORE, reading(200.0, qwen=(400, 50)), [booked(400, 50)])
    assert fell.is_within(0)
    assert fell.models[0].restarted
    gone = reconcile(BEFORE, reading(200.0), [booked(40, 5)])
    assert gone.models[0].restarted
    assert "started again" in told(gone)
    older = TokenCounters(prompt_tokens=10, completion_tokens=1, created_s=50.0)
    newer = TokenCounters(prompt_tokens=900, completion_tokens=90, created_s=150.0)
    anew = reconcile(reading(100.0, qwen=older), reading(200.0, qwen=newer), [booked(900, 90)])
    assert anew.is_within(0)
    assert anew.models[0].restarted


def test_what_the_books_know_of_a_difference_is_said() -> None:
    result = reconcile(
        BEFORE,
        reading(200.0, qwen=(3_000, 300)),
        [booked(1_500, 90, estimated_calls=2, reversals=1)],
        (0, 3),
    )
    text = told(result)
    assert "2 calls ended without a bill" in text
    assert "1 entries were taken back" in text
    assert "3 calls were under way at the end" in text
    assert "at the start" not in text
