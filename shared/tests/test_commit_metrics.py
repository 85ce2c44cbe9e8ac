"""Commits are counted by how they end, and none is hidden."""

import contextlib

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.services import Service
from inferbus_shared.bus.metrics import CommitMetrics
from inferbus_shared.bus.store import UnknownOutcomeError, WrongSequenceError

LOST = WrongSequenceError("somebody was first")
UNANSWERED = UnknownOutcomeError(Problem(code=ErrorCode.BUS_TIMEOUT, message="no answer"))


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [(None, "stored"), (LOST, "conflict"), (UNANSWERED, "unknown"), (ValueError("x"), None)],
)
def test_each_end_is_counted_once_and_passed_on(ends: Exception | None, outcome: str) -> None:
    registry = CollectorRegistry()
    metrics = CommitMetrics(Service.OPTIMIZER, registry)
    expected = pytest.raises(type(ends)) if ends else contextlib.nullcontext()
    with expected, metrics.committing():
        if ends:
            raise ends
    counts = {
        name: registry.get_sample_value("inferbus_optimizer_commits_total", {"outcome": name})
        for name in ("stored", "conflict", "unknown")
    }
    assert counts == {name: float(name == outcome) for name in counts}
