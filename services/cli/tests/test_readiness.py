"""When what was applied serves, and what it waits for until then."""

from typing import Any

from inferbus_cli.readiness import Readiness
from inferbus_contracts.events.route import ConditionFact, ConditionStatus, RoutesResolved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey

SERVING = ObjectKey("ModelServing", "default", "m")
ROUTE = ObjectKey("ModelRoute", "default", "r")
BOOSTER = ObjectKey("ModelBooster", "default", "b")


def observed(uid: str = "u", generation: int = 1, **counts: Any) -> WorkloadObserved:
    given = {"desired": 2, "replicas": 2, "ready": 2, "updated": 2} | counts
    return WorkloadObserved(uid=uid, generation=generation, **given)


def resolved(uid: str = "u", generation: int = 1, *, ready: bool = True) -> RoutesResolved:
    status = ConditionStatus.TRUE if ready else ConditionStatus.FALSE
    conditions = [
        ConditionFact(type="Accepted", status=ConditionStatus.TRUE, reason="Accepted"),
        ConditionFact(type="Ready", status=status, reason="NoPods", message="none is selected"),
        ConditionFact(type="Conflicted", status=ConditionStatus.FALSE, reason="NoConflicts"),
    ]
    return RoutesResolved(uid=uid, generation=generation, conditions=conditions)


def stored(uid: str, owner: str = "", deleted: bool = False) -> SpecChanged:
    references = [{"uid": owner}] if owner else []
    return SpecChanged(
        uid=uid,
        generation=1,
        digest="d",
        deleted=deleted,
        object={"metadata": {"ownerReferences": references}},
    )


def reasons(readiness: Readiness) -> dict[ObjectKey, str]:
    return {one.key: one.why for one in readiness.waiting()}


def test_a_workload_serves_once_its_newest_generation_runs_everywhere() -> None:
    readiness = Readiness({SERVING: ("u", 2)})
    assert reasons(readiness) == {SERVING: "not looked at yet"}
    readiness.take(SERVING, observed(generation=1))
    assert reasons(readiness) == {SERVING: "not looked at yet"}
    readiness.take(SERVING, observed(generation=2, ready=1, problem="no room"))
    assert reasons(readiness) == {SERVING: "1 of 2 ready, 2 updated: no room"}
    readiness.take(SERVING, observed(generation=2, updated=1))
    assert SERVING in reasons(readiness)
    readiness.take(SERVING, observed(generation=2, replicas=3, ready=3, updated=2))
    assert SERVING in reasons(readiness), "a surplus replica is still to go"
    readiness.take(SERVING, observed(generation=2))
    assert not readiness.waiting()


def test_the_fact_about_an_object_that_was_replaced_doesnt_count() -> None:
    readiness = Readiness({SERVING: ("new", 1)})
    readiness.take(SERVING, observed("old", generation=9))
    assert reasons(readiness) == {SERVING: "not looked at yet"}


def test_a_workload_of_no_replicas_serves() -> None:
    readiness = Readiness({SERVING: ("u", 1)})
    readiness.take(SERVING, observed(desired=0, replicas=0, ready=0, updated=0))
    assert not readiness.waiting()


def test_a_route_serves_once_all_that_is_needed_holds() -> None:
    readiness = Readiness({ROUTE: ("u", 1)})
    readiness.take(ROUTE, resolved(ready=False))
    assert reasons(readiness) == {ROUTE: "NoPods: none is selected"}
    readiness.take(ROUTE, resolved())
    assert not readiness.waiting()


def test_a_short_kind_waits_for_its_children() -> None:
    readiness = Readiness({BOOSTER: ("b", 1)})
    assert reasons(readiness) == {BOOSTER: "its workload isn't there yet"}
    readiness.take(ROUTE, stored("r", "b"))
    assert set(reasons(readiness)) == {BOOSTER, ROUTE}
    readiness.take(SERVING, stored("u", "b"))
    readiness.take(ROUTE, resolved("r"))
    assert reasons(readiness) == {SERVING: "not looked at yet"}
    readiness.take(SERVING, observed())
    assert not readiness.waiting()
    readiness.take(SERVING, stored("u", "b", deleted=True))
    assert reasons(readiness) == {BOOSTER: "its workload isn't there yet"}


def test_a_playground_waits_for_the_workload_of_its_service() -> None:
    playground = ObjectKey("Playground", "default", "p")
    service = ObjectKey("Service", "default", "p")
    workload = ObjectKey("LeaderWorkerSet", "default", "p")
    readiness = Readiness({playground: ("p", 1)})
    readiness.take(service, stored("s", "p"))
    assert reasons(readiness) == {service: "its workload isn't there yet"}
    readiness.take(workload, stored("w", "s"))
    assert reasons(readiness) == {workload: "not looked at yet"}
    readiness.take(workload, observed("w"))
    assert not readiness.waiting()


def test_children_of_others_dont_count() -> None:
    readiness = Readiness({BOOSTER: ("b", 1)})
    readiness.take(SERVING, stored("u", "another"))
    assert set(reasons(readiness)) == {BOOSTER}


def test_what_only_has_to_be_stored_is_never_waited_for() -> None:
    assert not Readiness({ObjectKey("ConfigMap", "default", "c"): ("u", 1)}).waiting()
