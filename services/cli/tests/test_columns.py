"""Objects as rows of tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from inferbus_cli.columns import columns_of
from inferbus_cli.views import Row, Scaling, table
from inferbus_contracts.events.route import ConditionFact, ConditionStatus, RoutesResolved
from inferbus_contracts.events.scaling import Limiter, Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import KINDS

GOLDEN = Path(__file__).parents[3] / "contracts" / "golden" / "objects"
NOW_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def document(**parts: Any) -> dict[str, Any]:
    metadata = {
        "name": "m",
        "namespace": "default",
        "creationTimestamp": "2025-12-31T23:58:30Z",
        **parts.pop("metadata", {}),
    }
    return {"metadata": metadata, **parts}


def shown(kind: str, *rows: Row, wide: bool = False, namespaces: bool = False) -> list[list[str]]:
    """The cells of a table; no cell of these tests holds three spaces."""
    text = table(rows, columns_of(kind), wide=wide, namespaces=namespaces)
    return [[cell for cell in line.split("   ") if cell.strip()] for line in text.splitlines()]


def cells(kind: str, row: Row, wide: bool = False) -> dict[str, str]:
    titles, values = shown(kind, row, wide=wide)
    return dict(
        zip((title.strip() for title in titles), (value.strip() for value in values), strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_columns_that_stand_an_empty_object(kind: str) -> None:
    row = Row(object=document(), now_ms=NOW_MS)
    titles, values = shown(kind, row, wide=True)
    assert len(titles) == len(values)
    assert (values[0].strip(), values[-1].strip()) == ("m", "90s")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.json")), ids=lambda path: path.parent.name)
def test_every_golden_object_is_a_row(path: Path) -> None:
    row = Row(object=json.loads(path.read_bytes()), now_ms=NOW_MS)
    assert len(shown(path.parent.name, row, wide=True)) == 2


def test_a_serving_counts_its_groups() -> None:
    roles = [{"name": "prefill", "replicas": 2}, {"name": "decode"}]
    row = Row(
        object=document(
            spec={"replicas": 4, "template": {"roles": roles}},
            status={
                "replicas": 5,
                "availableReplicas": 3,
                "updatedReplicas": 1,
                "updateRevision": "r2",
            },
        ),
        now_ms=NOW_MS,
    )
    assert cells("ModelServing", row) == {
        "NAME": "m",
        "DESIRED": "4",
        "READY": "3",
        "UPDATED": "1",
        "REVISION": "r2",
        "AGE": "90s",
    }
    wide = cells("ModelServing", row, wide=True)
    assert (wide["ROLES"], wide["GROUPS"]) == ("prefill×2,decode×1", "5")


@pytest.mark.parametrize(
    ("metadata", "status", "expected"),
    [
        ({}, {}, "Pending"),
        ({}, {"phase": "Running"}, "Running"),
        ({}, {"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"phase": "Running"}, "Terminating"),
        (
            {},
            {
                "phase": "Running",
                "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            },
            "CrashLoopBackOff",
        ),
    ],
)
def test_a_pods_status_is_the_reason_people_look_for(
    metadata: dict[str, Any], status: dict[str, Any], expected: str
) -> None:
    row = Row(object=document(metadata=metadata, status=status), now_ms=NOW_MS)
    assert cells("Pod", row)["STATUS"] == expected


def test_a_pod_counts_containers_and_restarts() -> None:
    statuses = [{"ready": True, "restartCount": 2}, {"ready": False, "restartCount": 1}]
    row = Row(
        object=document(
            spec={"containers": [{}, {}], "nodeName": "n"},
            status={"containerStatuses": statuses, "podIP": "127.1.0.2", "phase": "Running"},
        ),
        now_ms=NOW_MS,
    )
    found = cells("Pod", row, wide=True)
    assert (found["READY"], found["RESTARTS"], found["IP"], found["NODE"]) == (
        "1/2",
        "3",
        "127.1.0.2",
        "n",
    )


def test_a_route_shows_what_became_of_it() -> None:
    conditions = [
        ConditionFact(type="Accepted", status=ConditionStatus.TRUE, reason="Accepted"),
        ConditionFact(
            type="Ready", status=ConditionStatus.FALSE, reason="NoPods", message="none selected"
        ),
    ]
    resolved = RoutesResolved(
        uid="u", generation=1, conditions=conditions, endpoints=3, ready_endpoints=2
    )
    rules = [{"targetModels": [{"modelServerName": "a"}, {"modelServerName": "b"}]}]
    row = Row(
        object=document(spec={"modelName": "chat", "rules": rules}),
        now_ms=NOW_MS,
        resolved=resolved,
    )
    found = cells("ModelRoute", row, wide=True)
    assert (found["MODEL"], found["ENDPOINTS"], found["ACCEPTED"]) == ("chat", "2/3", "True")
    assert (found["SERVERS"], found["REASON"]) == ("a,b", "NoPods: none selected")


def test_a_policy_shows_its_target_and_the_last_decision() -> None:
    scaling = Scaling(
        target=ObjectKey("ModelServing", "default", "m", "decode"),
        min_replicas=0,
        max_replicas=8,
        current=2,
        desired=3,
        binding=Limiter.RATE,
        mode=Mode.PANIC,
        decided_ms=NOW_MS - 12_000,
    )
    row = Row(object=document(), now_ms=NOW_MS, scaling=scaling)
    found = cells("AutoscalingPolicyBinding", row, wide=True)
    assert found["TARGET"] == "ModelServing/m/decode"
    assert [found[name] for name in ("MIN", "MAX", "CURRENT", "DESIRED", "LAST")] == [
        "0",
        "8",
        "2",
        "3",
        "12s",
    ]
    assert (found["LIMITER"], found["MODE"]) == ("rate", "panic")


def test_a_booster_that_failed_says_so_first() -> None:
    conditions = [
        {"type": "Active", "status": "True"},
        {"type": "Failed", "status": "True"},
    ]
    row = Row(object=document(status={"conditions": conditions}), now_ms=NOW_MS)
    assert cells("ModelBooster", row)["STATUS"] == "Failed"


@pytest.mark.parametrize("kind", ["ModelBooster", "Playground", "Service"])
def test_a_short_kind_without_more_shows_whether_it_was_accepted(kind: str) -> None:
    conditions = [{"type": "Accepted", "status": "False", "reason": "NoSuchModel"}]
    refused = Row(object=document(status={"conditions": conditions}), now_ms=NOW_MS)
    assert cells(kind, refused)["STATUS"] == "NoSuchModel"
    assert cells(kind, Row(object=document(), now_ms=NOW_MS))["STATUS"] == "Pending"


def test_the_namespace_comes_first_where_it_is_shown() -> None:
    row = Row(object=document(), now_ms=NOW_MS)
    titles, values = shown("ConfigMap", row, namespaces=True)
    assert (titles[0].strip(), values[0].strip()) == ("NAMESPACE", "default")
