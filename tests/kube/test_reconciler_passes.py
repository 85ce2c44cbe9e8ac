"""The reconciler on an API server, pass by pass: what is created, changed and deleted there."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.api.objects import Preconditions, ScaleRequest
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_workload_reconciler.actions import ChildKind
from inferbus_workload_reconciler.core import Plan
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_fleet import KubeFleet, install_definitions, serving
from tests.support.kube_passes import USER, Passes, kube_substrate

Document = dict[str, Any]


@pytest_asyncio.fixture
async def fleet(kube_calls: KubeCalls, namespace: str) -> KubeFleet:
    await install_definitions(kube_calls)
    return KubeFleet(kube_calls, namespace)


@pytest_asyncio.fixture
async def passes(kube_server: KubeServer, fleet: KubeFleet) -> AsyncIterator[Passes]:
    async with kube_substrate(kube_server, fleet.namespace) as substrate:
        yield Passes(substrate)


async def settle(
    passes: Passes,
    fleet: KubeFleet,
    name: str = "x",
    *,
    until: Callable[[Document], bool] = lambda status: True,
) -> Plan:
    """Passes and kubelets in turn until there is nothing to do any more."""

    async def settled() -> Plan | None:
        await fleet.run_pods()
        document = await fleet.serving(name)
        plan = await passes.once(document)
        status = (await fleet.serving(name))["status"]
        ready = status["observedGeneration"] == document["metadata"]["generation"]
        ready = ready and status["availableReplicas"] == document["spec"]["replicas"]
        return plan if not plan.actions and ready and until(status) else None

    return await eventually(settled)


async def test_a_serving_gets_its_pods_services_and_snapshot(
    passes: Passes, fleet: KubeFleet
) -> None:
    made = await fleet.create(serving(replicas=2, workers=1))
    await settle(passes, fleet)
    pods = ["x-0-main-0-0", "x-0-main-0-1", "x-1-main-0-0", "x-1-main-0-1"]
    assert await fleet.names("pods") == pods
    assert await fleet.names("services") == ["x-0-main-0-0", "x-1-main-0-0"]
    (snapshot,) = await fleet.all("controllerrevisions", "apps")
    assert snapshot["revision"] == 1
    status = (await fleet.serving())["status"]
    assert (status["replicas"], status["availableReplicas"], status["updatedReplicas"]) == (2, 2, 2)
    for pod in await fleet.all("pods"):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)


async def test_a_settled_serving_is_left_alone(passes: Passes, fleet: KubeFleet) -> None:
    await fleet.create(serving(replicas=2))
    await settle(passes, fleet)
    before = (await fleet.serving(), await fleet.all("pods"))
    await passes.once(before[0])
    assert (await fleet.serving(), await fleet.all("pods")) == before


async def test_groups_come_and_go_with_the_number(passes: Passes, fleet: KubeFleet) -> None:
    await fleet.create(serving(replicas=1))
    await settle(passes, fleet)
    await fleet.change("x", {"replicas": 3})
    await settle(passes, fleet)
    assert await fleet.names("pods") == ["x-0-main-0-0", "x-1-main-0-0", "x-2-main-0-0"]
    await fleet.change("x", {"replicas": 1})
    await settle(passes, fleet)
    assert await fleet.names("pods") == ["x-0-main-0-0"]


async def test_new_templates_roll_out_group_by_group(passes: Passes, fleet: KubeFleet) -> None:
    await fleet.create(serving(replicas=2))
    await settle(passes, fleet)
    before = await fleet.uids()
    await fleet.change("x", {"template": serving(image="vllm:2")["spec"]["template"]})
    await passes.once(await fleet.serving())
    after = await fleet.uids()
    assert len(before.items() & after.items()) >= 1, "one group at a time"
    await settle(passes, fleet, until=lambda status: status["updatedReplicas"] == 2)
    images = {pod["spec"]["containers"][0]["image"] for pod in await fleet.all("pods")}
    assert images == {"vllm:2"}
    assert len(await fleet.all("controllerrevisions", "apps")) == 2


async def test_a_lost_pod_comes_again_under_its_name(passes: Passes, fleet: KubeFleet) -> None:
    await fleet.create(serving(replicas=2))
    await settle(passes, fleet)
    before = await fleet.uids()
    await fleet.delete_pod("x-1-main-0-0")

    async def replaced() -> bool:
        await settle(passes, fleet)
        now = await fleet.uids()
        return now.keys() == before.keys() and now["x-1-main-0-0"] != before["x-1-main-0-0"]

    await eventually(replaced)
    assert (await fleet.uids())["x-0-main-0-0"] == before["x-0-main-0-0"]


async def test_a_pod_on_a_node_keeps_its_name_until_it_has_ended(
    passes: Passes, fleet: KubeFleet, kube_calls: KubeCalls
) -> None:
    await fleet.create(serving(replicas=2))
    await settle(passes, fleet)
    await fleet.bind("x-1-main-0-0", "n1")
    await fleet.change("x", {"replicas": 1})
    plan = await passes.once(await fleet.serving())
    assert [one.result.outcome for one in passes.done] == [Outcome.DONE]
    pods = {pod["metadata"]["name"]: pod for pod in await fleet.all("pods")}
    assert "deletionTimestamp" in pods["x-1-main-0-0"]["metadata"]
    again = await passes.once(await fleet.serving())
    assert plan.actions
    assert not again.actions, "what is ending is seen to end"
    await fleet.run_pods()
    await settle(passes, fleet)
    assert await fleet.names("pods") == ["x-0-main-0-0"]


async def test_existing_pods_of_the_same_content_are_taken_over(
    kube_server: KubeServer, fleet: KubeFleet, kube_calls: KubeCalls
) -> None:
    """A fleet from before snapshots existed, with labels that another program computed."""
    document = await fleet.create(serving(replicas=2))
    async with kube_substrate(kube_server, fleet.namespace) as substrate:
        await settle(Passes(substrate), fleet)
    for pod in await fleet.all("pods"):
        labels = {"modelserving.volcano.sh/revision": "67b8d4b8c7"}
        labels["modelserving.volcano.sh/role-template-hash"] = None
        path = path_of("pods", fleet.namespace, pod["metadata"]["name"])
        assert (await kube_calls.merge(path, {"metadata": {"labels": labels}})).ok
    (snapshot,) = await fleet.names("controllerrevisions", "apps")
    await kube_calls.delete(path_of("controllerrevisions", fleet.namespace, snapshot, group="apps"))
    await kube_calls.merge(
        fleet.servings("x", "status"), {"status": {"currentRevision": "67b8d4b8c7"}}
    )
    before = await fleet.uids()
    async with kube_substrate(kube_server, fleet.namespace) as substrate:
        await settle(Passes(substrate), fleet)
    assert await fleet.uids() == before
    assert (await fleet.serving())["status"]["updateRevision"] == "67b8d4b8c7"
    assert document["metadata"]["generation"] == 1


async def test_ms_t56_a_name_that_another_object_holds_is_waited_for(
    passes: Passes, fleet: KubeFleet, kube_calls: KubeCalls
) -> None:
    pod = {
        "metadata": {"name": "x-0-main-0-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert (await kube_calls.post(path_of("pods", fleet.namespace), pod)).code == 201
    await fleet.create(serving())
    await passes.once(await eventually_seen(passes, fleet))
    (result,) = [one.result for one in passes.done if one.action.name == "x-0-main-0-0"]
    assert result.outcome is Outcome.CONFLICT
    assert "nothing owns" in result.error
    conditions = {one["type"]: one for one in (await fleet.serving())["status"]["conditions"]}
    assert conditions["ActionFailed"]["reason"] == "NameTaken"
    await fleet.delete_pod("x-0-main-0-0")
    await settle(passes, fleet)
    conditions = {one["type"]: one for one in (await fleet.serving())["status"]["conditions"]}
    assert conditions["ActionFailed"]["status"] == "False"


async def eventually_seen(passes: Passes, fleet: KubeFleet) -> Document:
    """The object, as soon as the substrate has heard of it."""

    async def seen() -> Document | None:
        document = await fleet.serving()
        try:
            await passes.substrate.observe(parse_workload(document))
        except ProblemsError:
            return None
        return document

    return await eventually(seen)


async def test_ms_d36_a_pod_that_is_refused_is_told_on_the_object(
    passes: Passes, fleet: KubeFleet
) -> None:
    document = serving()
    template = document["spec"]["template"]["roles"][0]["entryTemplate"]
    template["spec"]["containers"][0]["image"] = ""
    await fleet.create(document)
    await passes.once(await eventually_seen(passes, fleet))
    conditions = {one["type"]: one for one in (await fleet.serving())["status"]["conditions"]}
    if "ActionFailed" not in conditions:
        pytest.skip("this server admits a pod without an image")
    assert conditions["ActionFailed"]["reason"] == "FailedCreate"
    assert "x-0-main-0-0" in conditions["ActionFailed"]["message"]

    async def told() -> bool:
        events = (await fleet.calls.get(path_of("events", fleet.namespace))).items
        return any(one["reason"] == "FailedCreate" for one in events)

    await eventually(told)


async def test_ms_t66_events_tell_how_role_replicas_come(passes: Passes, fleet: KubeFleet) -> None:
    made = await fleet.create(serving())
    await settle(passes, fleet)

    async def told() -> bool:
        events = (await fleet.calls.get(path_of("events", fleet.namespace))).items
        about = [one for one in events if one["involvedObject"]["uid"] == made["metadata"]["uid"]]
        assert {one["source"]["component"] for one in about} <= {"modelserving-controller"}
        return {"RoleCreating", "RoleRunning"} <= {one["reason"] for one in about}

    await eventually(told)


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_a_view_is_never_older_than_own_writes(
    passes: Passes, fleet: KubeFleet, kube_server: KubeServer
) -> None:
    """Though no watch has told of them."""
    fake = kube_server.fake
    assert fake is not None
    document = await fleet.create(serving(replicas=2, workers=1))
    await eventually_seen(passes, fleet)
    fake.stall_watches()
    assert (await passes.once(document)).actions
    assert not (await passes.once(document)).actions
    for name in await fleet.names("pods"):
        await fleet.bind(name, "n1")
    smaller = await fleet.change("x", {"replicas": 1})
    assert (await passes.once(smaller)).actions
    again = (await passes.once(smaller)).actions
    assert ChildKind.POD not in {one.child for one in again}, "what is ending is seen to end"
    outcomes = {one.result.outcome for one in passes.done}
    assert outcomes <= {Outcome.ALREADY}, "what has ended is asked to end once more at most"


def wanted(document: Document, replicas: int, **more: Any) -> ScaleRequest:
    """A request as a decision about the object makes it."""
    metadata = document["metadata"]
    conditions = {"uid": metadata["uid"], "generation": metadata["generation"], **more}
    key = ObjectKey("ModelServing", metadata["namespace"], metadata["name"])
    return ScaleRequest(
        key=str(key),
        replicas=replicas,
        decision_id="d",
        preconditions=Preconditions.model_validate(conditions),
    )


@pytest.mark.parametrize("role", ["", "main"])
async def test_a_number_is_set_for_the_object_that_was_meant(
    passes: Passes, fleet: KubeFleet, role: str
) -> None:
    document = await fleet.create(serving())

    def request(replicas: int, **more: Any) -> ScaleRequest:
        asked = wanted(document, replicas, **more)
        return asked.model_copy(update={"key": f"{asked.key}/{role}" if role else asked.key})

    for other in ({"uid": "another"}, {"generation": 7}):
        reply = await passes.substrate.scale(request(3, **other))
        assert [problem.code for problem in reply.problems] == [ErrorCode.CONFLICT]
    assert (await fleet.serving())["metadata"]["generation"] == 1
    reply = await passes.substrate.scale(request(3))
    assert (reply.changed, reply.replicas, reply.generation) == (True, 3, 2)
    again = await passes.substrate.scale(request(3))
    assert again == reply, "the same decision is answered the same"
    assert (await fleet.serving())["metadata"]["generation"] == 2


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
@pytest.mark.parametrize("role", ["", "main"])
async def test_a_number_is_set_though_the_status_changes_meanwhile(
    passes: Passes, fleet: KubeFleet, kube_server: KubeServer, role: str
) -> None:
    fake = kube_server.fake
    assert fake is not None
    document = await fleet.create(serving())
    asked = wanted(document, 3)
    changes = iter(range(2))

    async def status_changes(call: Any) -> None:
        if call.user == USER and call.subresource != "status" and next(changes, None) is not None:
            status = {"status": {"replicas": 9}}
            await fleet.calls.merge(fleet.servings("x", "status"), status)

    fake.before_each_write(status_changes)
    key = f"{asked.key}/{role}" if role else asked.key
    reply = await passes.substrate.scale(asked.model_copy(update={"key": key}))
    assert (reply.problems, reply.changed, reply.replicas) == ([], True, 3)
