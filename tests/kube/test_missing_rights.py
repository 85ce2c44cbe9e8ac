"""A service whose account lacks a right says so in plain words, and goes on when it has it."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.manifests.cluster_rights import KTHENA_NAMESPACE
from inferbus_contracts.manifests.rbac import NAMESPACE, service_manifests
from inferbus_contracts.services import Service
from inferbus_workload_reconciler.policy_neighbours import KTHENA_LEASE
from inferbus_workload_reconciler.policy_parsing import parse_workload
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_calls import path_of
from tests.support.kube_fleet import KubeFleet, serving
from tests.support.kube_manifests import apply, governed_apiserver, install_definitions
from tests.support.kube_passes import Passes, kube_substrate

pytestmark = [pytest.mark.kube, pytest.mark.slow]

Document = dict[str, Any]
RECONCILER = Service.WORKLOAD_RECONCILER


@pytest.fixture(scope="module")
def apiserver() -> Iterator[KubeApiServer]:
    """A server of this module alone: rights are taken away on it."""
    with governed_apiserver() as server:
        asyncio.run(install_definitions(server))
        yield server


@pytest.fixture
def server(apiserver: KubeApiServer, tmp_path: Path) -> KubeServer:
    authority = apiserver.certificate_authority
    return KubeServer("real", apiserver.url, apiserver.tokens, tmp_path, ca_file=authority)


@pytest_asyncio.fixture
async def fleet(server: KubeServer) -> AsyncIterator[KubeFleet]:
    async with server.calls() as calls:
        name = f"team-{uuid.uuid4().hex[:8]}"
        namespaces = path_of("namespaces")
        assert (await calls.post(namespaces, {"metadata": {"name": name}})).ok
        yield KubeFleet(calls, name)


@contextlib.contextmanager
def lacking(apiserver: KubeApiServer, verb: str, resource: str) -> Iterator[None]:
    """The reconciler's account without a verb on a resource."""
    roles = [one for one in service_manifests(RECONCILER) if one["kind"] == "ClusterRole"]
    try:
        for role in roles:
            rules = [kept for rule in role["rules"] for kept in _without(rule, verb, resource)]
            assert apply(apiserver, {**role, "rules": rules}).status == 200
        yield
    finally:
        for role in roles:
            assert apply(apiserver, role).status == 200


def _without(rule: Document, verb: str, resource: str) -> Iterator[Document]:
    others = [one for one in rule["resources"] if one != resource]
    if len(others) == len(rule["resources"]):
        yield rule
        return
    if others:
        yield {**rule, "resources": others}
    verbs = [one for one in rule["verbs"] if one != verb]
    if verbs:
        yield {**rule, "resources": [resource], "verbs": verbs}


async def created(fleet: KubeFleet, passes: Passes) -> Document:
    """A ModelServing that the substrate has heard of."""
    made = await fleet.create(serving())
    key = parse_workload(made).key

    async def seen() -> bool:
        try:
            await passes.substrate.observe(parse_workload(made))
        except ProblemsError:
            return False
        return True

    await eventually(seen, what=f"{key} is seen")
    return made


async def is_refused(path: str, server: KubeServer) -> bool:
    """Whether the authoriser has heard of what was taken away."""
    async with server.calls(RECONCILER) as calls:
        return (await calls.get(path)).code == 403


@pytest.mark.parametrize(
    "path",
    [
        path_of("pods"),
        path_of("services"),
        path_of("nodes"),
        path_of("controllerrevisions", group="apps"),
        path_of("modelservings", group="workload.serving.volcano.sh", version="v1alpha1"),
    ],
)
async def test_what_may_not_be_looked_at_is_named_by_readiness(
    apiserver: KubeApiServer, server: KubeServer, path: str
) -> None:
    resource = path.rpartition("/")[2]
    async with contextlib.AsyncExitStack() as stack:
        with lacking(apiserver, "list", resource):
            await eventually(partial(is_refused, path, server))
            substrate = await stack.enter_async_context(kube_substrate(server, waits=False))
            said = f'cannot list resource "{resource}"'
            await eventually(lambda: said in substrate.missing()[f"kubernetes {resource}"])
        await eventually(lambda: substrate.missing() == {}, 60)


async def test_whether_other_controllers_elect_is_not_guessed(
    apiserver: KubeApiServer, server: KubeServer, fleet: KubeFleet
) -> None:
    with lacking(apiserver, "get", "leases"):
        name = f"{path_of('leases', KTHENA_NAMESPACE, group='coordination.k8s.io')}/{KTHENA_LEASE}"
        await eventually(partial(is_refused, name, server))
        async with kube_substrate(server, fleet.namespace, waits=False) as substrate:

            async def told() -> bool:
                missing = substrate.missing()
                return "leases" in missing.get("kubernetes cluster", "")

            await eventually(told)
            assert "isn't known yet" in substrate.missing()["other controllers"]


async def test_a_pod_that_may_not_be_created_is_told_on_the_object(
    apiserver: KubeApiServer, server: KubeServer, fleet: KubeFleet
) -> None:
    async with kube_substrate(server, fleet.namespace) as substrate:
        passes = Passes(substrate)
        made = await created(fleet, passes)
        with lacking(apiserver, "create", "pods"):

            async def told() -> str:
                await passes.once(made)
                for pod in await fleet.names("pods"):
                    await fleet.delete_pod(pod)
                told = (await fleet.serving()).get("status", {}).get("conditions", ())
                failed = [one for one in told if one["type"] == "ActionFailed"]
                return failed[0]["message"] if failed else ""

            message = await eventually(told)
            assert 'cannot create resource "pods"' in message
        await eventually(lambda: comes_up(passes, fleet))


async def comes_up(passes: Passes, fleet: KubeFleet) -> bool:
    await fleet.run_pods()
    await passes.once(await fleet.serving())
    status = (await fleet.serving())["status"]
    failed = [one["status"] for one in status["conditions"] if one["type"] == "ActionFailed"]
    return status["availableReplicas"] == 1 and failed in ([], ["False"])


async def test_a_status_that_may_not_be_written_is_a_problem_with_its_name(
    apiserver: KubeApiServer, server: KubeServer, fleet: KubeFleet
) -> None:
    async with kube_substrate(server, fleet.namespace) as substrate:
        passes = Passes(substrate)
        made = await created(fleet, passes)
        with lacking(apiserver, "patch", "modelservings/status"):

            async def told() -> ProblemsError | None:
                try:
                    await substrate.report(parse_workload(made), {"replicas": next(numbers)})
                except ProblemsError as error:
                    return error
                return None

            numbers = iter(range(10_000))
            error = await eventually(told)
            assert error.problems[0].code is ErrorCode.KUBE_REFUSED
            assert "modelservings/status" in error.problems[0].message


async def test_a_reconciler_that_is_held_to_a_namespace_works_there(
    apiserver: KubeApiServer, server: KubeServer, fleet: KubeFleet
) -> None:
    """With no right to look elsewhere, except for Kthena's controllers where those are."""
    roles = service_manifests(RECONCILER)
    held = service_manifests(RECONCILER, [fleet.namespace])
    open_bindings = [
        one
        for one in roles
        if one["kind"] == "ClusterRoleBinding" and not one["metadata"]["name"].endswith("-cluster")
    ]
    apiserver.call("POST", "/api/v1/namespaces", {"metadata": {"name": KTHENA_NAMESPACE}})
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    try:
        for binding in open_bindings:
            apiserver.call("DELETE", f"{bindings}/{binding['metadata']['name']}")
        for manifest in held:
            assert apply(apiserver, manifest).status in (200, 201)
        elsewhere = path_of("pods", NAMESPACE)
        await eventually(partial(is_refused, elsewhere, server))
        async with kube_substrate(server, fleet.namespace) as substrate:
            assert substrate.missing() == {}
            passes = Passes(substrate)
            await created(fleet, passes)
            await eventually(lambda: comes_up(passes, fleet))
            controller = {
                "metadata": {
                    "name": "kthena",
                    "labels": {"app.kubernetes.io/component": "kthena-controller-manager"},
                },
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            assert (await fleet.calls.post(path_of("pods", KTHENA_NAMESPACE), controller)).ok
            await eventually(lambda: "pod kthena runs" in str(substrate.missing()))
    finally:
        pods = path_of("pods", KTHENA_NAMESPACE, "kthena")
        await fleet.calls.delete(pods, {"gracePeriodSeconds": 0})
        for manifest in roles:
            apply(apiserver, manifest)
