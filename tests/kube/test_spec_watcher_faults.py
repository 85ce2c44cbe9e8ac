"""Everything an API server can do to a spec-watcher: it recovers, says so, and loses nothing."""

import contextlib
from collections.abc import AsyncIterator

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.service import Runtime
from inferbus_spec_watcher.settings import SpecWatcherSettings
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes.faults import Answer, Cut, Page
from tests.kube.short_kinds import policy
from tests.kube.test_spec_watcher_api import objects
from tests.kube.test_spec_watcher_children import CHILDREN, EXPANDED, play
from tests.kube.test_spec_watcher_facts import ended, serving, told
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import (
    DEFINITIONS,
    LEADER_WORKER_SETS,
    Document,
    cluster_watcher,
    create,
    definitions,
    fact,
    install,
    place,
    saying,
    there,
)
from tests.support.nats import NatsServer

SPACE = "default"


@contextlib.asynccontextmanager
async def running(
    nats: NatsServer, kube: KubeServer, **options: object
) -> AsyncIterator[tuple[FakeKubernetes, KubeCalls, Bus, Runtime[SpecWatcherSettings]]]:
    """A watcher of a fake that serves all kinds, once it has told of a first object."""
    assert kube.fake is not None
    async with kube.calls() as calls, nats.bus(Service.CLI) as bus:
        await install(calls, *definitions(), LEADER_WORKER_SETS)
        async with cluster_watcher(nats, kube, **options) as runtime:
            await create(calls, serving("before"), SPACE)
            await told(bus, key_of("before"), generation=1)
            yield kube.fake, calls, bus, runtime


def key_of(name: str) -> ObjectKey:
    return ObjectKey("ModelServing", SPACE, name)


async def test_history_that_is_gone_is_listed_anew(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, _):
        fake.cut_watches("modelservings")
        await create(calls, serving("after"), SPACE)
        await calls.delete(place("ModelServing", SPACE, "before"))
        fake.compact()
        fake.expire_watches()
        await told(bus, key_of("after"), generation=1)
        await eventually(lambda: ended(bus, key_of("before")))


async def test_a_stalled_watch_is_noticed(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    short = {"watch_timeout_seconds": 1, "watch_margin_seconds": 0.2}
    async with running(nats_server, fake_kube_server, **short) as (fake, calls, bus, _):
        fake.stall_watches()
        await create(calls, serving("after"), SPACE)
        await told(bus, key_of("after"), generation=1)


async def test_pages_of_a_proxy_and_failures_delay_the_work_and_lose_none(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, _):
        for fault in (Page(), Answer(500), Answer(503), Answer(429, retry_after_seconds=0), Cut()):
            fake.faults.add(fault, verb="apply", times=2)
            fake.faults.add(fault, verb="patch", subresource="status")
        fake.faults.add(Cut(), verb="apply", times=2, carried_out=True)
        fake.faults.add(Page(), verb="watch", times=4)
        fake.cut_watches()
        model = await play(calls, SPACE)
        for kind, name in CHILDREN:
            await eventually(
                lambda kind=kind, name=name: there(calls, kind, SPACE, name), timeout=60
            )
        await eventually(lambda: saying(calls, "Service", SPACE, "play", Expanded=EXPANDED))
        await told(bus, ObjectKey("ModelServer", SPACE, "play"), generation=1)
        assert model


async def test_an_api_server_that_is_away_is_told_and_waited_for(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, runtime):

        async def is_ready() -> bool:
            return await runtime.missing() == {}

        await eventually(is_ready)
        first = await fact(bus, key_of("before"))
        await fake.stop()

        async def is_missed() -> bool:
            missing = await runtime.missing()
            return "IB-4011" in missing.get("kind ModelServing", "")

        await eventually(is_missed)
        assert await fact(bus, key_of("before")) == first
        await fake.start()
        await create(calls, serving("after"), SPACE)
        await told(bus, key_of("after"), generation=1)
        await eventually(is_ready)
        assert await fact(bus, key_of("before")) == first


async def test_what_is_no_object_stops_no_other(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, _):
        for line in (
            b"<html>what is this</html>",
            b'{"type": "ADDED", "object": {"metadata": {"name": 7}}}',
            b'{"type": "ADDED", "object": {"metadata": {"name": "x", "namespace": "default", '
            b'"uid": "u", "resourceVersion": "999999"}, "spec": ["nonsense"]}}',
        ):
            fake.send_to_watches(line, "modelservings")
        await create(calls, serving("after"), SPACE)
        await told(bus, key_of("after"), generation=1)


async def test_a_kind_that_comes_later_and_goes_for_a_while(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    """A CRD that isn't served for a moment says nothing about its objects."""
    fake = fake_kube_server.fake
    assert fake is not None
    crds = {one["spec"]["names"]["plural"]: one for one in definitions()}
    servings = crds.pop("modelservings")
    async with fake_kube_server.calls() as calls, nats_server.bus(Service.CLI) as bus:
        await install(calls, *crds.values())
        async with cluster_watcher(nats_server, fake_kube_server):
            await install(calls, servings)
            await create(calls, serving("before"), SPACE)
            first = await told(bus, key_of("before"), generation=1)
            await serve(calls, servings, served=False)
            fake.cut_watches("modelservings")

            async def is_noticed() -> bool:
                try:
                    await objects(bus).get(key_of("before"))
                except ProblemsError as error:
                    return error.problems[0].code is ErrorCode.UNSUPPORTED
                return False

            await eventually(is_noticed)
            await create(calls, policy("turn"), SPACE)
            await told(bus, ObjectKey("AutoscalingPolicy", SPACE, "turn"), generation=1)
            assert await fact(bus, key_of("before")) == first
            await serve(calls, servings, served=True)
            await create(calls, serving("after"), SPACE)
            await told(bus, key_of("after"), generation=1)
            assert await fact(bus, key_of("before")) == first


async def serve(calls: KubeCalls, crd: Document, *, served: bool) -> None:
    """Let the server serve a kind, or stop it; its objects stay."""
    path = f"{DEFINITIONS}/{crd['metadata']['name']}"
    stored = (await calls.get(path)).body
    stored["spec"]["versions"][0]["served"] = served
    assert (await calls.put(path, stored)).ok
    wanted = 200 if served else 404

    async def is_so() -> bool:
        return (await calls.get(place("ModelServing"))).code == wanted

    await eventually(is_so)
