"""What the autoscaler counts of its own decisions."""

from typing import Any

from prometheus_client import CollectorRegistry

from inferbus_autoscaler.outcomes import Decide
from inferbus_autoscaler.telemetry import DecisionMetrics
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import DecisionRecord, Limiter, Mode, ScalingDecided
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.decider import Verdict
from inferbus_shared.bus.messages import Received

A, B = (ObjectKey("ModelServing", "default", name) for name in "ab")
NOW_MS = 1_000_000
LAG_MS = 400


class Counted:
    """The metrics, and what a page of them would say."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._metrics = DecisionMetrics(self.registry, lambda: NOW_MS)

    def commit(self, key: ObjectKey, *effects: Decide, owner: tuple[str, ...] = ("u", "t")) -> None:
        sample = MetricsSampled(policy="p", taken_at_ms=NOW_MS - LAG_MS, window_ms=1, targets=[])
        envelope = Envelope(id="e", type="metrics.sampled", source="s", time_ms=NOW_MS, key=key)
        event = Received(envelope, sample, "INBOX", 1)
        self._metrics.committed(key, event, Verdict({"owner": list(owner)}, effects))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"inferbus_autoscaler_{name}", labels)


def decision(key: ObjectKey, binding: Limiter, mode: Mode = Mode.STABLE) -> Decide:
    record: dict[str, Any] = {"decider": "a", "version": "1", "policy": "p", "policy_digest": "d"}
    return Decide(
        str(key),
        ScalingDecided(
            current=1,
            desired=2,
            mode=mode,
            target_uid="u",
            target_generation=1,
            record=DecisionRecord(**record, input={}, binding=binding),
        ),
    )


def test_decisions_are_counted_by_what_bound_them() -> None:
    counted = Counted()
    counted.commit(A, decision(A, Limiter.RATE))
    counted.commit(B, decision(B, Limiter.RATE, Mode.PANIC))
    counted.commit(A, decision(A, Limiter.RATE))
    assert counted.value("decisions_total", mode="stable", binding="rate", apply="auto") == 2
    assert counted.value("decisions_total", mode="panic", binding="rate", apply="auto") == 1


def test_a_target_counts_once_as_its_last_decision_says_and_no_longer_than_it_is_scaled() -> None:
    counted = Counted()
    counted.commit(A, decision(A, Limiter.RATE))
    counted.commit(B, decision(B, Limiter.FREEZE))
    counted.commit(A, decision(A, Limiter.FREEZE))
    assert counted.value("targets", mode="stable", binding="rate") == 0
    assert counted.value("targets", mode="stable", binding="freeze") == 2
    counted.commit(B, owner=())
    assert counted.value("targets", mode="stable", binding="freeze") == 1


def test_roles_that_are_decided_about_together_count_each_and_go_together() -> None:
    counted = Counted()
    policy = ObjectKey("AutoscalingPolicy", "default", "pair")
    decode, prefill = (A._replace(role=role) for role in ("decode", "prefill"))
    counted.commit(policy, decision(decode, Limiter.RATE), decision(prefill, Limiter.RATE))
    counted.commit(policy, decision(decode, Limiter.RATIO))
    assert counted.value("targets", mode="stable", binding="rate") == 1
    assert counted.value("targets", mode="stable", binding="ratio") == 1
    counted.commit(policy, owner=())
    assert counted.value("targets", mode="stable", binding="rate") == 0
    assert counted.value("targets", mode="stable", binding="ratio") == 0


def test_the_lag_behind_a_sample_is_measured_in_virtual_seconds() -> None:
    counted = Counted()
    counted.commit(A)
    assert counted.value("sample_lag_seconds_count") == 1
    assert counted.value("sample_lag_seconds_sum") == LAG_MS / 1000


def test_labels_are_words_of_the_contracts() -> None:
    counted = Counted()
    counted.commit(A, decision(A, Limiter.RATE))
    allowed = {"mode", "binding", "apply", "le"}
    for family in counted.registry.collect():
        for sample in family.samples:
            assert sample.labels.keys() <= allowed
            assert str(A) not in sample.labels.values()
