"""The loop on a cluster: objects on the API server become pods that answer, scale and go.

The platform is started as its users start it; all that is asked is what the API server shows and
what the router answers.
"""

import asyncio
import copy
import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    MODEL_ROUTE,
    MODEL_SERVER,
    MODEL_SERVING,
    POD,
)
from inferbus_contracts.services import Service
from tests.scenario.fleet import BEHAVIOUR
from tests.support.eventually import eventually
from tests.support.kube_own import OwnServer
from tests.support.kube_platform import KubePlatform
from tests.support.load import Load, running_load
from tests.support.platform import engines, model_manifests

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PATIENCE_SECONDS = 60.0
MODEL = "chat"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an operator says that a machine is down for good."""
CLIENTS = 6
TOKENS = 20
"""Of one answer: a second or so, longer than the time between two samples."""


def scaled_model(least: int, most: int) -> list[dict[str, Any]]:
    """A model whose policy wants two running requests per replica, and is quick about it."""
    documents = model_manifests(MODEL, scaling=(least, most))
    for document in documents:
        if document["kind"] == AUTOSCALING_POLICY:
            document["spec"]["behavior"] = BEHAVIOUR
    return documents


def pod_spec_of(workload: dict[str, Any]) -> dict[str, Any]:
    """The template of the one kind of pod of a ModelServing; a change of it is one of that."""
    (role,) = workload["spec"]["template"]["roles"]
    spec: dict[str, Any] = role["entryTemplate"]["spec"]
    return spec


async def serving(kube: KubePlatform, documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Apply a model's objects; its one pod, once the router answers."""
    await kube.apply(*documents)
    await kube.until_it_serves(MODEL)
    (first,) = await kube.until_ready(1)
    return first


async def replicas(kube: KubePlatform) -> int:
    """What the ModelServing on the API server wants."""
    stored = await kube.get(MODEL_SERVING, MODEL)
    assert stored is not None
    return int(stored["spec"]["replicas"])


async def until_scaled(kube: KubePlatform, wanted: int) -> list[dict[str, Any]]:
    """Wait until the object asks for so many replicas, and so many pods are ready."""

    async def asked() -> bool:
        return await replicas(kube) == wanted

    await eventually(asked, PATIENCE_SECONDS, f"{wanted} replicas are asked for")
    return await kube.until_ready(wanted)


def press(load: Load, clients: int = CLIENTS) -> None:
    load.clients(MODEL, clients, max_tokens=TOKENS)


async def test_a_model_serves_scales_with_its_load_and_goes(kube: KubePlatform) -> None:
    first = await serving(kube, scaled_model(1, 3))
    async with running_load(kube.platform.router) as load:
        press(load)
        pods = await until_scaled(kube, 3)
        assert first["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in pods}
        press(load, 0)
        await until_scaled(kube, 1)
        assert load.counts.bad == 0, load.counts
    for kind in (
        AUTOSCALING_POLICY_BINDING,
        AUTOSCALING_POLICY,
        MODEL_ROUTE,
        MODEL_SERVER,
        MODEL_SERVING,
    ):
        await kube.delete(kind, MODEL)
    await kube.until_empty()


async def test_a_model_without_requests_has_no_pods_until_one_comes(kube: KubePlatform) -> None:
    await kube.apply(*scaled_model(0, 2))
    await until_scaled(kube, 0)
    answer = await kube.complete(MODEL)
    assert answer.status == 200
    assert await replicas(kube) >= 1


@pytest.mark.parametrize(
    "service", [Service.WORKLOAD_RECONCILER, Service.SPEC_WATCHER, Service.NODE_AGENT]
)
async def test_killed_in_the_middle_of_scaling_a_service_goes_on_where_it_was(
    kube: KubePlatform, service: Service
) -> None:
    first = await serving(kube, scaled_model(1, 3))
    async with running_load(kube.platform.router) as load:
        press(load)

        async def begun() -> bool:
            return await replicas(kube) > 1

        await eventually(begun, PATIENCE_SECONDS, "more replicas are asked for")
        killed = await asyncio.to_thread(kube.platform.kill, service.value)
        pods = await until_scaled(kube, 3)
        assert first["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in pods}
        await eventually(lambda: kube.platform.pid(service.value) != killed, PATIENCE_SECONDS)
        await eventually(kube.every_pod_has_one_process, PATIENCE_SECONDS)
        assert load.counts.bad == 0, load.counts

    await kube.delete(MODEL_SERVING, MODEL)

    async def ending() -> bool:
        return len(await kube.ready_pods()) < 3

    await eventually(ending, PATIENCE_SECONDS, "pods end")
    await asyncio.to_thread(kube.platform.kill, service.value)
    await kube.until_no_pods()


async def test_while_the_api_server_is_away_answers_go_on_and_then_the_loop_does(
    kube: KubePlatform, own_server: OwnServer
) -> None:
    first = await serving(kube, scaled_model(1, 3))
    async with running_load(kube.platform.router) as load:
        await own_server.away()
        press(load)
        answered = 3 * CLIENTS
        await eventually(lambda: load.counts.good > answered, PATIENCE_SECONDS)
        (process,) = engines(kube.platform)
        assert process == first["metadata"]["uid"]
        await own_server.back()
        pods = await until_scaled(kube, 3)
        assert first["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in pods}
        assert load.counts.bad == 0, load.counts


async def test_a_lost_machines_pod_is_replaced_and_ends_when_the_machine_is_back(
    kube: KubePlatform,
) -> None:
    documents = model_manifests(MODEL)
    pod_spec_of(documents[0])["terminationGracePeriodSeconds"] = 1
    lost = await serving(kube, documents)
    agent = await asyncio.to_thread(kube.platform.pid, Service.NODE_AGENT.value)
    os.kill(agent, signal.SIGSTOP)
    try:
        await kube.taint(OUT_OF_SERVICE)
        await kube.delete(POD, lost["metadata"]["name"])

        async def replaced() -> bool:
            uids = [pod["metadata"]["uid"] for pod in await kube.pods()]
            return len(uids) == 1 and uids != [lost["metadata"]["uid"]]

        await eventually(replaced, PATIENCE_SECONDS, "another pod takes its place")
        assert engines(kube.platform).keys() == {lost["metadata"]["uid"]}
    finally:
        os.kill(agent, signal.SIGCONT)
    await kube.until_ready(1)
    await eventually(kube.every_pod_has_one_process, PATIENCE_SECONDS)
    await kube.until_it_serves(MODEL)


async def test_a_rolling_update_under_load_fails_no_request(kube: KubePlatform) -> None:
    documents = model_manifests(MODEL, replicas=2)
    await kube.apply(*documents)
    await kube.until_it_serves(MODEL)
    before = {pod["metadata"]["uid"] for pod in await kube.until_ready(2)}
    async with running_load(kube.platform.router) as load:
        press(load, 3)
        await eventually(lambda: load.counts.good > CLIENTS, PATIENCE_SECONDS)
        changed = copy.deepcopy(documents[0])
        (engine,) = pod_spec_of(changed)["containers"]
        engine["args"] += ["--max-num-seqs", "64"]
        await kube.apply(changed)

        async def replaced() -> bool:
            pods = await kube.ready_pods()
            now = {pod["metadata"]["uid"] for pod in pods}
            return len(now) == 2 == len(await kube.pods()) and not now & before

        await eventually(replaced, 2 * PATIENCE_SECONDS, "both pods are new")
        answered = load.counts.good
        await eventually(lambda: load.counts.good > answered + CLIENTS, PATIENCE_SECONDS)
        assert load.counts.bad == 0, load.counts
