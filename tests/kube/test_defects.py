"""Defects of Kthena by number (modelserving spec 7.1), and how they are mended, on API servers."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.workload import Outcome
from inferbus_workload_reconciler.policy_kept import OUT_OF_SERVICE
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.fakes.kubernetes import Answer
from tests.fakes.kubernetes.crds import pod_group_definition
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_fleet import KubeFleet, install_definitions, serving
from tests.support.kube_passes import USER, Passes, kube_substrate
from tests.support.kube_watcher import install

Document = dict[str, Any]
POD_GROUPS = pod_group_definition()
NEW_FACTS_SECONDS = 30.0
"""Definitions and leases are looked at every five seconds."""


@pytest_asyncio.fixture
async def fleet(kube_calls: KubeCalls, namespace: str) -> KubeFleet:
    await install_definitions(kube_calls)
    await install(kube_calls, POD_GROUPS)
    return KubeFleet(kube_calls, namespace)


@pytest_asyncio.fixture
async def passes(kube_server: KubeServer, fleet: KubeFleet) -> AsyncIterator[Passes]:
    async with kube_substrate(kube_server, fleet.namespace) as substrate:
        yield Passes(substrate)


def gang(replicas: int = 2) -> Document:
    """Groups that are scheduled together."""
    document = serving(replicas=replicas, workers=1, schedulerName="volcano")
    document["spec"]["template"]["gangPolicy"] = {"minRoleReplicas": {"main": 1}}
    return document


async def settle(passes: Passes, fleet: KubeFleet, *, runs_pods: bool = True) -> None:
    """Passes and kubelets in turn until there is nothing to do any more."""

    async def settled() -> bool:
        if runs_pods:
            await fleet.run_pods()
        document = await fleet.serving()
        try:
            plan = await passes.once(document)
        except ProblemsError:
            return False  # the object isn't seen yet
        status = (await fleet.serving())["status"]
        wanted = document["spec"]["replicas"]
        return not plan.actions and status["availableReplicas"] == wanted

    await eventually(settled, 30)


async def groups(fleet: KubeFleet) -> list[str]:
    path = path_of(
        "podgroups", fleet.namespace, group=POD_GROUPS["spec"]["group"], version="v1beta1"
    )
    return sorted((await fleet.calls.get(path)).names)


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_ms_d31_at_rest_nothing_is_asked_and_nothing_is_written(
    passes: Passes, fleet: KubeFleet, kube_server: KubeServer
) -> None:
    """However often everything is looked at; who else is there is asked every five seconds."""
    fake = kube_server.fake
    assert fake is not None
    await fleet.create(gang())
    await settle(passes, fleet)
    assert await groups(fleet) == ["x-0", "x-1"]
    document = await fleet.serving()
    fake.record.clear()
    for _ in range(5):
        assert (await passes.once(document)).actions == ()
    asked = {"leases", "customresourcedefinitions", ""}
    calls = [
        (one.verb, one.path)
        for one in fake.record.calls
        if one.user == USER and one.verb != "watch" and one.plural not in asked
    ]
    assert calls == []


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_ms_d16_a_pod_that_could_not_be_created_is_created_by_the_next_pass(
    passes: Passes, fleet: KubeFleet, kube_server: KubeServer
) -> None:
    fake = kube_server.fake
    assert fake is not None
    await fleet.create(serving(replicas=1))
    await settle(passes, fleet)
    fake.faults.add(Answer(403), verb="create", resource="pods", times=1)
    role = serving()["spec"]["template"]["roles"][0] | {"replicas": 3}
    grown = await fleet.change("x", {"template": {"roles": [role]}})
    await passes.once(grown)
    failed = [one for one in passes.done if one.result.outcome is Outcome.FAILED]
    assert len(failed) == 1
    await passes.once(grown)
    assert failed[0].action.name in await fleet.names("pods")
    await settle(passes, fleet)
    names = ["x-0-main-0-0", "x-0-main-1-0", "x-0-main-2-0"]
    assert await fleet.names("pods") == names


@pytest.mark.parametrize("how", ["gone", "out of service"])
async def test_ms_d19_a_pod_whose_node_is_lost_makes_way(
    passes: Passes, fleet: KubeFleet, how: str
) -> None:
    """Nobody there ends it any more; before that is certain it keeps its name."""
    node = f"node-{uuid.uuid4().hex[:8]}"
    assert (await fleet.calls.post(path_of("nodes"), {"metadata": {"name": node}})).ok
    await fleet.create(serving(replicas=2))
    await settle(passes, fleet)
    lost = "x-1-main-0-0"
    await fleet.bind(lost, node)
    before = await fleet.uids()
    await fleet.calls.delete(path_of("pods", fleet.namespace, lost), {"gracePeriodSeconds": 1})
    document = await fleet.serving()

    async def is_seen_to_end() -> bool:
        pods = (await passes.substrate.observe(parse_workload(document))).observed.pods
        return any(pod.name == lost and pod.deleting for pod in pods)

    await eventually(is_seen_to_end)
    await passes.once(document)
    assert (await fleet.uids()) == before
    if how == "gone":
        assert (await fleet.calls.delete(path_of("nodes", "", node))).ok
    else:
        taints = [{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]
        path = path_of("nodes", "", node)
        assert (await fleet.calls.merge(path, {"spec": {"taints": taints}})).ok

    async def is_replaced() -> bool:
        await passes.once(document)
        now = await fleet.uids()
        return now.keys() == before.keys() and now[lost] != before[lost]

    await eventually(is_replaced)
    assert (await fleet.uids())["x-0-main-0-0"] == before["x-0-main-0-0"]
    await fleet.calls.delete(path_of("nodes", "", node))


async def test_ms_d44_two_instances_at_once_do_what_one_does(
    kube_server: KubeServer, passes: Passes, fleet: KubeFleet
) -> None:
    """Whatever made them believe that it is theirs: names and uids keep them apart."""
    await fleet.create(gang())
    async with kube_substrate(kube_server, fleet.namespace) as substrate:
        other = Passes(substrate)

        async def both() -> bool:
            await fleet.run_pods()
            document = await fleet.serving()
            pair = (passes.once(document), other.once(document))
            ends = await asyncio.gather(*pair, return_exceptions=True)
            failed = [one for one in ends if isinstance(one, BaseException)]
            assert all(isinstance(one, ProblemsError) for one in failed), failed
            status = (await fleet.serving()).get("status") or {}
            idle = all(not getattr(one, "actions", True) for one in ends)
            return idle and status.get("availableReplicas") == document["spec"]["replicas"]

        await eventually(both, 30)
        before = await fleet.uids()
        assert len(before) == 4
        assert await groups(fleet) == ["x-0", "x-1"]
        assert len(await fleet.names("controllerrevisions", "apps")) == 1
        await fleet.change("x", {"replicas": 1})
        await eventually(both, 30)
        after = await fleet.uids()
        assert len(after) == 2
        assert after.items() <= before.items()


@pytest.mark.slow
@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_ms_t72_pod_groups_may_be_taken_away_while_pods_run(
    passes: Passes, fleet: KubeFleet
) -> None:
    """Nothing that runs is touched, and what comes is scheduled by the cluster's own scheduler."""
    await fleet.create(gang())
    await settle(passes, fleet)
    before = await fleet.uids()
    definition = path_of(
        "customresourcedefinitions",
        "",
        POD_GROUPS["metadata"]["name"],
        group="apiextensions.k8s.io",
    )
    assert (await fleet.calls.delete(definition)).ok
    document = await fleet.serving()

    async def is_known() -> bool:
        observed = (await passes.substrate.observe(parse_workload(document))).observed
        return observed.cluster.volcano is False

    await eventually(is_known, NEW_FACTS_SECONDS)
    await settle(passes, fleet)
    assert await fleet.uids() == before
    await fleet.change("x", {"replicas": 3})
    await settle(passes, fleet)
    after = await fleet.uids()
    assert before.items() <= after.items()
    assert len(after) == 6
    assert passes.substrate.missing() == {}


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_a_malformed_pod_group_keeps_nothing_from_going_on(
    passes: Passes, fleet: KubeFleet, kube_server: KubeServer
) -> None:
    fake = kube_server.fake
    assert fake is not None
    await fleet.create(gang(1))
    await settle(passes, fleet)
    odd = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "odd",
            "namespace": fleet.namespace,
            "uid": "odd",
            "resourceVersion": "999999",
            "labels": {"modelserving.volcano.sh/name": "x"},
            "ownerReferences": "nobody",
        },
        "spec": ["what"],
    }
    line = json.dumps({"type": "ADDED", "object": odd}).encode() + b"\n"
    assert fake.send_to_watches(line, "podgroups") > 0
    await fleet.change("x", {"replicas": 2})
    await settle(passes, fleet)
    assert await groups(fleet) == ["x-0", "x-1"]
