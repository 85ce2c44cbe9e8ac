"""The memory document beside the object's status."""

import json

from hypothesis import given
from hypothesis import strategies as st
from workload_builders import role, serving
from workload_world import World

from inferbus_contracts.canonical import canonical_json
from inferbus_workload_reconciler.core import is_stale
from inferbus_workload_reconciler.policy_memory import (
    Failing,
    Memory,
    Setback,
    Standing,
    memory_document,
    parse_memory,
)
from inferbus_workload_reconciler.workload import ReplicaId

replicas = st.builds(
    ReplicaId,
    st.integers(0, 200),
    st.sampled_from(["prefill", "decode", "a-1"]),
    st.integers(0, 50),
)
times = st.integers(0, 2**50)
memories = st.builds(
    Memory,
    view=st.integers(0, 2**60),
    current_revision=st.text(max_size=10),
    replicas=st.dictionaries(replicas, st.sampled_from(Standing)),
    failing=st.dictionaries(st.text(min_size=1), st.builds(Failing, times, st.booleans())),
    forgiven_restarts=st.dictionaries(st.text(min_size=1), st.integers(1, 99)),
    setbacks=st.dictionaries(st.text(min_size=1), st.builds(Setback, st.integers(1, 99), times)),
)


@given(memories)
def test_a_memory_survives_being_stored(memory: Memory) -> None:
    stored = json.loads(canonical_json(memory_document(memory)))
    assert parse_memory(stored, {}) == memory


def test_an_empty_document_is_a_fresh_memory() -> None:
    assert parse_memory({}, {}) == Memory()


def test_another_controllers_status_names_the_revision_to_protect() -> None:
    assert parse_memory({}, {"currentRevision": "67b8d4"}).current_revision == "67b8d4"
    document = {"currentRevision": "new"}
    assert parse_memory(document, {"currentRevision": "old"}).current_revision == "new"


def test_a_uniform_fleet_takes_a_line_however_large_it_is() -> None:
    world = World(serving(100, [role(replicas=2, workers=1), role("decode", replicas=3)]))
    world.settle()
    assert world.memory["running"] == {"0-99": {"prefill": "0-1", "decode": "0-2"}}
    assert len(canonical_json(world.memory)) < 200


def test_a_resting_fleet_does_not_touch_its_memory() -> None:
    world = World(serving(2))
    world.settle()
    before = dict(world.memory)
    for _ in range(3):
        world.reconcile()
    assert world.memory == before


def test_a_view_from_before_the_memory_is_stale() -> None:
    world = World(serving(1))
    old = world.observed()
    world.settle()
    memory = parse_memory(world.memory, {})
    assert is_stale(old, memory)
    assert not is_stale(world.observed(), memory)
    assert not is_stale(old, Memory())
