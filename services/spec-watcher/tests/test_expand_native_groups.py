"""Groups of an inference Service where nothing runs LeaderWorkerSets (ruling "without LWS")."""

from typing import Any

from expansion_builders import open_model, service
from expansion_service import expanded
from expansion_store import Document, Store, child, kinds

from inferbus_contracts.resources.kinds import LEADER_WORKER_SET, MODEL_SERVING
from inferbus_spec_watcher.expansion import Expansion
from inferbus_spec_watcher.expansion.native_groups import serving_spec

SELECTOR = {
    "leaderworkerset.sigs.k8s.io/name": "svc",
    "leaderworkerset.sigs.k8s.io/worker-index": "0",
}


def several() -> Document:
    document = service("svc")
    template = document["spec"]["workloadTemplate"]
    template |= {"size": 3, "leaderTemplate": template["workerTemplate"], "restartPolicy": "None"}
    return document


def conditions(result: Expansion) -> dict[str, str]:
    return {one.type: one.reason for one in result.conditions}


def test_they_are_a_model_serving_that_names_its_pods_alike() -> None:
    groups = child(expanded(several()), "LeaderWorkerSet")["spec"]
    result = expanded(several(), groups=MODEL_SERVING)
    made = child(result, "ModelServing")
    assert "LeaderWorkerSet" not in kinds(result)
    assert made["metadata"]["name"] == "svc"
    assert made["metadata"]["annotations"]["inferbus.dev/naming"] == "leader-worker-set"
    (role,) = made["spec"]["template"]["roles"]
    assert (role["name"], role["replicas"], role["workerReplicas"]) == ("default", 1, 2)
    assert role["entryTemplate"] == groups["leaderWorkerTemplate"]["leaderTemplate"]
    assert role["workerTemplate"] == groups["leaderWorkerTemplate"]["workerTemplate"]
    assert made["spec"]["recoveryPolicy"] == "None"
    assert made["spec"]["replicas"] == groups["replicas"]


def test_they_are_reached_the_same_way() -> None:
    result = expanded(several(), groups=MODEL_SERVING)
    assert child(result, "CoreService")["spec"]["selector"] == SELECTOR
    selector = child(result, "ModelServer")["spec"]["workloadSelector"]
    assert selector["matchLabels"] == SELECTOR


def test_what_a_leader_worker_set_says_is_said() -> None:
    groups: dict[str, Any] = {
        "replicas": 2,
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1},
        },
        "leaderWorkerTemplate": {
            "size": 1,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {"spec": {"schedulerName": "volcano", "containers": []}},
        },
    }
    spec = serving_spec(groups)
    assert spec["recoveryPolicy"] == "ServingGroupRecreate"
    assert spec["schedulerName"] == "volcano"
    assert spec["rolloutStrategy"] == {
        "type": "ServingGroupRollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1},
    }
    (role,) = spec["template"]["roles"]
    assert "workerReplicas" not in role or role["workerReplicas"] == 0
    assert "workerTemplate" not in role


def test_while_it_is_not_known_what_runs_them_nothing_is_made() -> None:
    result = expanded(service("svc"), groups=None)
    assert result.blocked
    assert conditions(result)["Expanded"] == "GroupsUnknown"


def kept(kind: str, **settings: Any) -> Expansion:
    """Of a Service whose groups are of a kind already."""
    store = Store(service("svc"), open_model(), groups=kind)
    first = store.expand("Service", "svc")
    store.put(child(first, kind), owner=store.get("Service", "svc"))
    store.settings = Store(**settings).settings
    return store.expand("Service", "svc")


def test_groups_that_run_stay_of_their_kind_whatever_comes_or_goes() -> None:
    for kind, other in ((LEADER_WORKER_SET, MODEL_SERVING), (MODEL_SERVING, LEADER_WORKER_SET)):
        for groups in (kind, other, None):
            result = kept(kind, groups=groups)
            assert kind in kinds(result)
            assert other not in kinds(result)
            unattended = kind == LEADER_WORKER_SET and groups == MODEL_SERVING
            assert ("GroupsUnattended" in conditions(result)) is unattended


def test_a_setting_that_names_who_runs_them_moves_them() -> None:
    for kind, other in ((LEADER_WORKER_SET, MODEL_SERVING), (MODEL_SERVING, LEADER_WORKER_SET)):
        result = kept(kind, groups=other, keeps_groups=False)
        assert other in kinds(result)
        assert kind not in kinds(result)
