"""What status, top and describe print, and what policies scale."""

from typing import Any

from inferbus_cli.descriptions import Description, concerns
from inferbus_cli.live_tables import rendered
from inferbus_cli.platform.overview import ProcessRow
from inferbus_cli.scaling_facts import last_decisions, scalings
from inferbus_cli.status_report import as_document, bus_lines, bus_tables, down, process_table
from inferbus_contracts.api.console import (
    DurableRow,
    InventoryReply,
    ModelRow,
    RouterRow,
    StreamRow,
    TargetRow,
    TopReply,
)
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.events.scaling import (
    Allocation,
    DecisionRecord,
    Limiter,
    ScalingAllocated,
    ScalingDecided,
)
from inferbus_contracts.events.workload import Action, Outcome, WorkloadActed, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.settlement import settle
from inferbus_shared.bus.messages import Received

NOW_MS = 1_767_225_600_000
GROUP = "workload.serving.volcano.sh/v1alpha1"


def process(name: str, state: str, **changes: Any) -> ProcessRow:
    given: dict[str, Any] = {
        "pid": 7,
        "restarts": 0,
        "uptime_seconds": 61.0,
        "memory_bytes": 3 * 2**20,
    }
    return ProcessRow(name=name, state=state, **(given | changes))


INVENTORY = InventoryReply(
    now_ms=NOW_MS,
    clock_rate=10,
    streams=[
        StreamRow(name="FACTS", messages=12, bytes=2048, max_bytes=4096),
        StreamRow(name="DECISIONS", messages=1, bytes=10),
    ],
    durables=[
        DurableRow(
            name="autoscaler-p0",
            stream="INBOX_AUTOSCALER",
            service="autoscaler",
            waiting=2,
            in_flight=1,
            redelivered=0,
        ),
        DurableRow(
            name="autoscaler-p1",
            stream="INBOX_AUTOSCALER",
            service="autoscaler",
            waiting=3,
            in_flight=0,
            redelivered=4,
        ),
    ],
    routers=[
        RouterRow(router="r-0", revision=5, published_revision=7, lag_ms=12, seen_ms=NOW_MS - 3000)
    ],
    missing=["durable X: not found"],
    dead_letters=3,
)


def test_processes_are_a_line_each() -> None:
    rows = [process("nats", "running"), process("console", "down", pid=None, memory_bytes=None)]
    assert process_table(rows) == (
        "PROCESS   STATE     PID   RESTARTS   UPTIME   MEMORY\n"
        "nats      running   7     0          61s      3.0 MiB\n"
        "console   down      -     0          61s      -\n"
    )
    assert down(rows) == ["console"]
    assert down([process("supervisor", "ready")]) == []


def test_the_bus_is_streams_readers_and_routers() -> None:
    assert bus_tables(INVENTORY, wide=False) == (
        "STREAM      MESSAGES   SIZE      LIMIT     USED\n"
        "FACTS       12         2.0 KiB   4.0 KiB   50%\n"
        "DECISIONS   1          10 B      -         -\n"
        "\n"
        "READER       WAITING   IN FLIGHT   REDELIVERED\n"
        "autoscaler   5         1           4\n"
        "\n"
        "ROUTER   REVISION   BEHIND   LAG    SEEN\n"
        "r-0      5          2        12ms   3s ago\n"
    )
    assert "autoscaler-p1   3         0           4\n" in bus_tables(INVENTORY, wide=True)


def test_dead_letters_and_what_is_missing_are_told() -> None:
    told = bus_lines(0.42, INVENTORY)
    assert "answers in 0.4 ms, clock ×10" in told
    assert "3, see `inferbus tap --dead`" in told
    assert "missing        durable X: not found" in told


def test_status_as_json_has_all_of_it() -> None:
    problem = Problem(code=ErrorCode.NOT_RUNNING, message="x")
    told = as_document([process("nats", "running")], INVENTORY, [problem])
    assert told["processes"][0]["name"] == "nats"
    assert told["bus"]["deadLetters"] == 3
    assert told["problems"][0]["code"] == "IB-4004"
    assert as_document([], None, [])["bus"] is None


def test_top_shows_targets_and_models() -> None:
    target = TargetRow(
        target="ModelServing/default/m",
        desired=3,
        replicas=2,
        ready=1,
        policy="AutoscalingPolicy/default/p",
        last_decision="2 → 3",
        last_decision_ms=NOW_MS - 4000,
        metrics={"waiting": 4.5},
    )
    model = ModelRow(
        model="chat",
        target="ModelServing/default/m",
        requests_per_second=12.5,
        errors_per_second=0,
        output_tokens_per_second=800,
        queued=1,
        in_flight=7,
        ttft_p50_ms=80,
        ttft_p99_ms=1500,
    )
    assert rendered(TopReply(targets=[target], models=[model]), NOW_MS) == (
        "TARGET                   DESIRED   READY   LAST DECISION   AGE   METRICS       POLICY\n"
        "ModelServing/default/m   3         1/2     2 → 3           4s    waiting=4.5   "
        "AutoscalingPolicy/default/p\n"
        "\n"
        "MODEL   REQ/S   ERR/S   TOKENS/S   QUEUED   RUNNING   TTFT P50   TTFT P99   TARGET\n"
        "chat    12.5    0       800        1        7         80ms       1.50s      "
        "ModelServing/default/m\n"
    )
    assert rendered(TopReply(), NOW_MS) == "no workload and no traffic\n"


def event(data: EventData, key: ObjectKey, sequence: int = 1) -> Received[EventData]:
    envelope = Envelope(
        id=f"{sequence:08}-and-more",
        type=data.event_type,
        source="s",
        time_ms=NOW_MS - 1000,
        key=key,
        causation_id="caused-by-this",
    )
    return Received(envelope, data, "FACTS", sequence)


def acted(what: str) -> WorkloadActed:
    return WorkloadActed(
        action=Action.CREATE,
        object=what,
        reason="ScaleUp",
        cause="0 of 1 exist",
        outcome=Outcome.DONE,
    )


def test_a_description_has_every_section() -> None:
    key = ObjectKey("ModelServing", "default", "m", "decode")
    document = {
        "apiVersion": GROUP,
        "kind": "ModelServing",
        "metadata": {
            "name": "m",
            "namespace": "default",
            "uid": "u-1",
            "generation": 2,
            "creationTimestamp": "2025-12-31T23:59:00Z",
            "labels": {"b": "2", "a": "1"},
            "managedFields": [{"manager": "cli", "fields": ["/spec/replicas"]}],
        },
        "spec": {"replicas": 1},
        "status": {
            "replicas": 1,
            "conditions": [
                {
                    "type": "Available",
                    "status": "True",
                    "reason": "AllReady",
                    "lastTransitionTime": "2025-12-31T23:59:30Z",
                }
            ],
        },
    }
    child = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "m-0", "namespace": "default"}}
    told = Description(
        object=document,
        children=[child],
        events=[event(acted("Pod/default/m-0"), key)],
        now_ms=NOW_MS,
    ).text()
    for part in (
        "Name:         m\n",
        "Created:      2025-12-31T23:59:00Z (60s ago)\n",
        "Labels:       a=1\n              b=2\n",
        "Conditions:\n  TYPE        STATUS   REASON     SINCE   MESSAGE\n"
        "  Available   True     AllReady   30s     -\n",
        "Spec:\n  replicas: 1\n",
        "Status:\n  replicas: 1\n",
        "Children:\n  NAME      AGE\n  pod/m-0   -\n",
        "  2025-12-31T23:59:59.000Z   workload.acted   00000001   caused-b   decode: create Pod",
    ):
        assert part in told, part
    assert "managedFields" not in told


def test_an_object_without_events_says_so() -> None:
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    told = Description(object=document, children=[], events=[], now_ms=NOW_MS).text()
    assert told.endswith("Events:\n  none lately\n")
    assert "Children" not in told


def test_a_pods_events_are_those_of_its_workload_about_it() -> None:
    key = ObjectKey("ModelServing", "default", "m")
    assert concerns(event(acted("Pod/default/m-0"), key), "Pod/default/m-0")
    assert not concerns(event(acted("Pod/default/m-1"), key), "Pod/default/m-0")


def record(binding: Limiter) -> DecisionRecord:
    return DecisionRecord(
        decider="d", version="1", policy="p", policy_digest="d", input={}, binding=binding
    )


def decided(desired: int, binding: Limiter = Limiter.NONE) -> ScalingDecided:
    return ScalingDecided(
        current=1,
        desired=desired,
        target_uid="u",
        target_generation=1,
        record=record(binding),
    )


def test_the_newest_decision_about_a_target_counts_whoever_made_it() -> None:
    target = ObjectKey("ModelServing", "default", "m")
    mix = ObjectKey("AutoscalingPolicy", "default", "p")
    share = Allocation(target=str(target), uid="u", generation=1, current=2, desired=6)
    allocated = ScalingAllocated(
        allocations=[share], cost=1, optimal_cost=1, record=record(Limiter.CAPACITY)
    )
    events = [
        event(decided(4), target, 3),
        event(allocated, mix, 9),
        event(decided(2), target, 5),
    ]
    last = last_decisions(events)[target]
    assert (last.desired, last.binding, last.sequence) == (6, Limiter.CAPACITY, 9)


def test_a_policy_and_its_binding_both_show_the_target() -> None:
    target = ObjectKey("ModelServing", "default", "m")
    policy = ObjectKey("AutoscalingPolicy", "default", "p")
    binding = ObjectKey("AutoscalingPolicyBinding", "default", "b")
    documents: dict[ObjectKey, dict[str, Any]] = {
        policy: {
            "apiVersion": GROUP,
            "kind": "AutoscalingPolicy",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"metrics": [{"metricName": "waiting", "targetValue": "2"}]},
        },
        binding: {
            "apiVersion": GROUP,
            "kind": "AutoscalingPolicyBinding",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {
                "policyRef": {"name": "p"},
                "homogeneousTarget": {
                    "target": {"targetRef": {"name": "m"}},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                },
            },
        },
    }
    settled = settle(
        {key: read_policy_object(key, "u", 1, document) for key, document in documents.items()}
    )
    workloads = {target: WorkloadObserved(uid="u", generation=1, desired=3, replicas=2)}
    decisions = last_decisions([event(decided(3, Limiter.RATE), target)])
    found = scalings(settled, workloads, decisions)
    assert set(found) == {policy, binding}
    for rows in found.values():
        (row,) = rows
        assert (row.target, row.min_replicas, row.max_replicas) == (target, 1, 5)
        assert (row.current, row.desired, row.binding) == (2, 3, Limiter.RATE)
    undecided = scalings(settled, {}, {})[policy][0]
    assert (undecided.current, undecided.desired, undecided.decided_ms) == (None, None, None)
