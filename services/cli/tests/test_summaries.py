"""One line for every event there is."""

from pathlib import Path

import pytest

from inferbus_cli.summaries import MAX_LENGTH, summary
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.route import EndpointEntry, RoutePublished, ServerEntry
from inferbus_contracts.events.spec import SpecChanged, SpecRejected
from inferbus_contracts.events.workload import WorkloadObserved

GOLDEN = Path(__file__).parents[3] / "contracts" / "golden"

FULL = {
    "spec.changed": "deleted by cli",
    "workload.observed": "gone",
    "workload.acted": "load-adapter Pod/default/chat-0-server-0-0, AdapterWanted (adapter fr is "
    "wanted and not loaded) failed: the engine answered 404",
    "scaling.applied": "awaiting approval, 3 replicas, generation 3: mode is approve",
    "metrics.sampled": "kthena:num_requests_waiting 17, ttft 0.1, queue 1e+22 from 2 pods, "
    "1 missing, 1 failed, chat-1-server-0-0: no answer within 3 s",
    "metrics.assessed": "samples are not whole: ModelServing/default/chat: pod chat-0-main-0-0: "
    "port 8000/metrics: no page within 3 s",
    "demand.observed": "chat 12/s, 8 in flight, 3 queued, 1 errors",
    "demand.summed": "chat 1.2/s, 8 in flight, 3 queued, 1 errors",
    "demand.pending": "7 requests for chat held at router-1",
    "scaling.demanded": "6.5 units, 7 replicas (now 4), held by bounds, panic, advise, "
    "kthena:num_requests_waiting 17 / 5 wants 4",
    "scaling.decided": "2 → 3, held by bounds, panic, approve, "
    "kthena:num_requests_waiting 17 / 5 wants 4",
    "scaling.allocated": "ModelServing/default/chat 1 → 3; cost 120, at least 90, held by capacity",
    "state.autoscaler": "state after inbox event 4711, last decision 5f2b8f6c",
    "state.optimizer": "state after inbox event 4711, last decision 5f2b8f6c",
    "state.decided": "state after inbox event 4711, last decision 5f2b8f6c",
    "state.allocated": "state after inbox event 4711, last decision 5f2b8f6c",
    "woken.autoscaler": "timer: the stabilisation window ends",
    "woken.optimizer": "timer: the stabilisation window ends",
    "route.published": "revision 42: withdrawn",
    "route.acknowledged": "serves revision 42, 37 ms after it was published",
    "routes.resolved": "2 of 3 endpoints ready; EndpointsReady: Starting 1 of 3 is starting; "
    "ResolvedRefs: NoWorkload nothing has these labels",
    "model.requested": "hf://Qwen/Qwen2.5-0.5B-Instruct wanted on node-1, "
    "for ModelServing/default/chat",
    "model.progressed": "500.0 MiB of 942.3 MiB, 100.0 MiB/s",
    "model.ready": "ready at /cache/qwen: 9 files, 942.3 MiB",
    "control.frozen": "frozen by ada: Wartung am Samstag",
    "control.thawed": "thawed by ada: Wartung am Samstag",
    "control.approved": "decision 0b7c9a52-6f0e-5d0e-9d0a-2f4f3f5f9c11 approved by ada: "
    "checked by hand",
    "audit.sealed": "DECISIONS 1 to 4711, 4700 messages, 9f86d081884c7d65",
}
"""What is said of each type's golden event with everything in it."""


def golden(event_type: str, name: str) -> EventData:
    body = (GOLDEN / f"{event_type}.v1" / f"{name}.json").read_bytes()
    return EVENTS[event_type].data.from_json(body)


@pytest.mark.parametrize("name", ["full", "minimal"])
@pytest.mark.parametrize("event_type", EVENTS)
def test_every_type_has_a_line(event_type: str, name: str) -> None:
    line = summary(golden(event_type, name))
    assert 0 < len(line) <= MAX_LENGTH
    assert "\n" not in line
    assert not line.startswith((" ", ";"))
    assert not line.endswith((" ", ":"))


@pytest.mark.parametrize("event_type", FULL)
def test_the_line_says_what_matters(event_type: str) -> None:
    assert summary(golden(event_type, "full")) == FULL[event_type]


def test_a_body_is_never_shown_whole() -> None:
    problem = Problem(code=ErrorCode.BROKEN_YAML, message="x" * 1000)
    line = summary(SpecRejected(manager="cli", problems=[problem, problem]))
    assert len(line) == MAX_LENGTH
    assert line.endswith("…")


def test_a_changed_spec_names_generation_writer_and_replicas() -> None:
    data = SpecChanged(
        uid="u", generation=3, digest="d", object={"spec": {"replicas": 4}}, changed_by="scale"
    )
    assert summary(data) == "generation 3 by scale, 4 replicas"


def test_a_workload_in_a_rollout_says_so() -> None:
    data = WorkloadObserved(
        uid="u", generation=1, desired=4, replicas=4, ready=3, updated=1, frozen=True, problem="no"
    )
    assert summary(data) == "3 of 4 ready, 1 updated, frozen: no"


def test_a_published_server_counts_endpoints_that_take_requests() -> None:
    endpoints = [
        EndpointEntry(pod="a", address="::1", port=1),
        EndpointEntry(pod="b", address="::1", port=1, draining=True),
        EndpointEntry(pod="c", address="::1", port=1, ready=False),
    ]
    server = ServerEntry(endpoints=endpoints)
    data = RoutePublished(revision=7, digest="d", table_digest="t", server=server)
    assert summary(data) == "revision 7: 1 of 3 endpoints ready"
