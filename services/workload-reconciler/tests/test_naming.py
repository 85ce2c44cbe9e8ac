"""Names, labels, environment and services (modelserving spec 2.1 to 2.6, llmaz spec 2.4, 2.5)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_builders import role

from inferbus_workload_reconciler.policy_naming import MODEL_SERVING
from inferbus_workload_reconciler.policy_naming_lws import LEADER_WORKER, ROLE
from inferbus_workload_reconciler.policy_revisions import role_template
from inferbus_workload_reconciler.workload import ReplicaId, Slot

DOMAIN = "modelserving.volcano.sh"
LWS = "leaderworkerset.sigs.k8s.io"


def test_entry_and_worker_pods_are_named_by_group_role_replica_and_index() -> None:
    assert MODEL_SERVING.pod_name("sample", Slot(0, "decode", 1, 0)) == "sample-0-decode-1-0"
    assert MODEL_SERVING.pod_name("sample", Slot(0, "decode", 1, 3)) == "sample-0-decode-1-3"


def test_a_role_with_capitals_gives_lower_case_names_and_keeps_its_label() -> None:
    slot = Slot(0, "Prefill", 0, 0)
    labels = MODEL_SERVING.pod_labels("default", "x", slot)
    assert MODEL_SERVING.pod_name("x", slot) == "x-0-prefill-0-0"
    assert labels[f"{DOMAIN}/role"] == "Prefill"
    assert MODEL_SERVING.slot_of("x", "x-0-prefill-0-0", labels) == slot


def test_only_the_entry_pod_carries_the_entry_label() -> None:
    entry = MODEL_SERVING.pod_labels("default", "x", Slot(2, "decode", 1, 0))
    worker = MODEL_SERVING.pod_labels("default", "x", Slot(2, "decode", 1, 1))
    assert entry == {
        f"{DOMAIN}/name": "x",
        f"{DOMAIN}/group-name": "x-2",
        f"{DOMAIN}/role": "decode",
        f"{DOMAIN}/role-id": "decode-1",
        f"{DOMAIN}/entry": "true",
    }
    assert worker == {key: value for key, value in entry.items() if key != f"{DOMAIN}/entry"}


def test_containers_learn_their_place_in_their_role_replica() -> None:
    environment = MODEL_SERVING.environment("prod", "x", Slot(0, "decode", 1, 3), 4)
    assert [(one["name"], one["value"]) for one in environment.variables] == [
        ("GROUP_SIZE", "4"),
        ("ENTRY_ADDRESS", "x-0-decode-1-0.prod"),
        ("WORKER_INDEX", "3"),
    ]
    assert not environment.first


def test_a_service_selects_the_entry_pod_of_its_role_replica_alone() -> None:
    replica = ReplicaId(1, "decode", 2)
    services = MODEL_SERVING.services("x", [(replica, role_template(role("decode", workers=1)))])
    assert list(services) == ["x-1-decode-2-0"]
    assert services["x-1-decode-2-0"].selector == {
        f"{DOMAIN}/group-name": "x-1",
        f"{DOMAIN}/role": "decode",
        f"{DOMAIN}/role-id": "decode-2",
        f"{DOMAIN}/entry": "true",
    }


def test_ms_t53_a_role_without_a_worker_template_has_no_service() -> None:
    without = role_template(role("decode"))
    unused = role_template(role("decode", workerTemplate={"spec": {"containers": []}}))
    replica = ReplicaId(0, "decode", 0)
    assert MODEL_SERVING.services("x", [(replica, without)]) == {}
    assert list(MODEL_SERVING.services("x", [(replica, unused)])) == ["x-0-decode-0-0"]


def test_ms_t80_the_scale_selector_names_one_pod_per_group() -> None:
    assert MODEL_SERVING.label_selector("x", "prefill", 0) == (
        f"{DOMAIN}/entry=true,{DOMAIN}/name=x,{DOMAIN}/role-id=prefill-0,{DOMAIN}/role=prefill"
    )


def test_leaders_are_named_like_their_group_and_workers_by_index() -> None:
    assert LEADER_WORKER.pod_name("p", Slot(3, ROLE, 0, 0)) == "p-3"
    assert LEADER_WORKER.pod_name("p", Slot(3, ROLE, 0, 2)) == "p-3-2"


def test_pods_without_leader_worker_set_look_as_it_would_have_made_them() -> None:
    slot = Slot(0, ROLE, 0, 1)
    assert LEADER_WORKER.pod_labels("default", "p", slot) == {
        f"{LWS}/name": "p",
        f"{LWS}/group-index": "0",
        f"{LWS}/worker-index": "1",
        f"{LWS}/group-key": hashlib.sha1(b"default/p-0", usedforsecurity=False).hexdigest(),
    }
    environment = LEADER_WORKER.environment("default", "p", slot, 2)
    assert [(one["name"], one["value"]) for one in environment.variables] == [
        ("LWS_LEADER_ADDRESS", "p-0.p.default"),
        ("LWS_GROUP_SIZE", "2"),
        ("LWS_WORKER_INDEX", "1"),
    ]
    assert environment.first
    assert LEADER_WORKER.pod_fields("p", slot) == {"hostname": "p-0-1", "subdomain": "p"}


def test_leader_worker_groups_share_one_headless_service() -> None:
    services = LEADER_WORKER.services("p", [])
    assert list(services) == ["p"]
    assert services["p"].selector == {f"{LWS}/name": "p"}


names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
ordinals = st.integers(0, 2**31 - 1)


@given(
    names,
    ordinals,
    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,9}[A-Za-z0-9])?", fullmatch=True),
    ordinals,
    ordinals,
)
def test_every_pod_name_leads_back_to_its_slot(
    workload: str, group: int, role_name: str, ordinal: int, index: int
) -> None:
    slot = Slot(group, role_name, ordinal, index)
    labels = MODEL_SERVING.pod_labels("default", workload, slot)
    assert MODEL_SERVING.slot_of(workload, MODEL_SERVING.pod_name(workload, slot), labels) == slot


@given(names, ordinals, ordinals)
def test_every_leader_worker_name_leads_back_to_its_slot(
    workload: str, group: int, index: int
) -> None:
    slot = Slot(group, ROLE, 0, index)
    assert LEADER_WORKER.slot_of(workload, LEADER_WORKER.pod_name(workload, slot), {}) == slot


@pytest.mark.parametrize("name", ["y-0-prefill-0-0", "x-a-prefill-0-0", "x-0-0-0", "x", "x-0-lb"])
def test_names_of_other_things_have_no_slot(name: str) -> None:
    assert MODEL_SERVING.slot_of("x", name, {}) is None
    assert LEADER_WORKER.slot_of("x", f"{name}z", {}) is None
