"""A spec-watcher that can't look for a while: what happened meanwhile is told afterwards, once."""

import time
from typing import Any

import pytest

from inferbus_contracts.resources.kinds import INGRESS_KINDS
from inferbus_contracts.services import Service
from inferbus_shared.bus.service import Runtime
from inferbus_shared.kube.resources import resource_of
from inferbus_spec_watcher.kubernetes_store import FOLLOWED
from tests.fakes.kubernetes import Page
from tests.kube.test_spec_watcher_children import CHILDREN, EXPANDED, play
from tests.kube.test_spec_watcher_facts import ended, serving, told
from tests.kube.test_spec_watcher_faults import SPACE, key_of, running
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_outages import (
    FAST,
    FAULTS,
    MINUTE,
    MOST_CALLS_PER_MINUTE,
    OUTAGE,
    fast_clock,
    named,
    strike,
    watch_failures,
)
from tests.support.kube_watcher import create, fact, facts_in, place, saying, there
from tests.support.nats import NatsServer

pytestmark = pytest.mark.slow

USER = Service.SPEC_WATCHER
METRICS = "inferbus_spec_watcher_kube"
SERVED = [kind for kind in FOLLOWED if kind not in INGRESS_KINDS]
"""Kinds that the fake serves."""


async def misses_servings(runtime: Runtime[Any]) -> bool:
    return "kind ModelServing" in await runtime.missing()


async def is_ready(runtime: Runtime[Any]) -> bool:
    return await runtime.missing() == {}


@pytest.mark.parametrize("action", FAULTS, ids=named)
async def test_what_happened_while_it_could_not_look_is_told(
    nats_server: NatsServer,
    fake_kube_server: KubeServer,
    action: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"read_timeout_seconds": 1.0}
    async with running(nats_server, fake_kube_server, **options) as (fake, calls, bus, runtime):
        await create(calls, serving("kept"), SPACE)
        kept = await told(bus, key_of("kept"), generation=1)
        strike(fake, USER, action)
        await eventually(lambda: misses_servings(runtime))
        assert watch_failures(runtime.registry, METRICS, "ModelServing") > 0
        await create(calls, serving("after"), SPACE)
        await calls.delete(place("ModelServing", SPACE, "before"))
        fake.faults.clear()
        await told(bus, key_of("after"), generation=1)
        await eventually(lambda: ended(bus, key_of("before")))
        await eventually(lambda: is_ready(runtime))
        assert await fact(bus, key_of("kept")) == kept
    said = {record.getMessage() for record in caplog.records if record.name == "inferbus.kube"}
    assert said >= OUTAGE


@pytest.mark.parametrize("away", ["stopped", "behind a proxy"])
async def test_a_minute_without_an_api_server_loses_nothing(
    nats_server: NatsServer,
    fake_kube_server: KubeServer,
    away: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("inferbus_shared.kube.client.SystemClock", fast_clock)
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, runtime):
        await create(calls, serving("kept"), SPACE)
        kept = await told(bus, key_of("kept"), generation=1)
        before = await facts_in(nats_server, SPACE)
        began = time.monotonic()
        fake.record.clear()
        if away == "stopped":
            await fake.stop()
        else:
            fake.faults.add(Page(503), user=USER, times=None)
            fake.cut_watches()
            await create(calls, serving("during"), SPACE)
            await calls.delete(place("ModelServing", SPACE, "before"))
        await eventually(lambda: misses_servings(runtime))
        await eventually(lambda: time.monotonic() - began > MINUTE / FAST)
        tries = fake.record.count("list", "modelservings")
        tries += fake.record.count("watch", "modelservings")
        assert tries <= MOST_CALLS_PER_MINUTE
        fake.compact()
        fake.faults.clear()
        if away == "stopped":
            assert await facts_in(nats_server, SPACE) == before, (
                "of what can't be seen nothing is told"
            )
            await fake.start()
            await create(calls, serving("during"), SPACE)
            await calls.delete(place("ModelServing", SPACE, "before"))
        await told(bus, key_of("during"), generation=1)
        await eventually(lambda: ended(bus, key_of("before")))
        await eventually(lambda: is_ready(runtime))
        assert await fact(bus, key_of("kept")) == kept
    said = {record.getMessage() for record in caplog.records if record.name == "inferbus.kube"}
    assert said >= OUTAGE


async def test_objects_that_are_none_are_told_of_every_kind(
    nats_server: NatsServer, fake_kube_server: KubeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(nats_server, fake_kube_server) as (fake, calls, bus, runtime):
        before = await fact(bus, key_of("before"))
        for kind in SERVED:
            plural = resource_of(kind).plural
            await eventually(lambda plural=plural: fake.watches(plural))
            for line in (
                b'{"type": "ADDED", "object": {"metadata": {"name": 7}}}',
                b'{"type": "MODIFIED", "object": []}',
                b'{"type": "ADDED", "object": {"metadata": {"name": "shape", "namespace": '
                b'"default", "uid": "u", "resourceVersion": "1", "labels": ["odd"], '
                b'"ownerReferences": 7}, "spec": ["nonsense"], "status": "odd"}}',
            ):
                fake.send_to_watches(line, plural)
        await create(calls, serving("after"), SPACE)
        await told(bus, key_of("after"), generation=1)
        assert await fact(bus, key_of("before")) == before
        assert await fact(bus, key_of("shape")) is None
        for kind in SERVED:
            left_out = f"{METRICS}_malformed_objects_total"
            assert runtime.registry.get_sample_value(left_out, {"kind": kind}), kind
    told_of = [record for record in caplog.records if record.getMessage() == "object left out"]
    assert all(any(kind in record.problem for record in told_of) for kind in SERVED)


@pytest.mark.parametrize("carried_out", [False, True], ids=["lost", "done"])
@pytest.mark.parametrize("action", FAULTS, ids=named)
async def test_children_come_whatever_writes_run_into(
    nats_server: NatsServer, fake_kube_server: KubeServer, action: Any, carried_out: bool
) -> None:
    options = {"read_timeout_seconds": 1.0}
    async with running(nats_server, fake_kube_server, **options) as (fake, calls, bus, _):
        common = {"user": USER, "times": 2, "carried_out": carried_out}
        fake.faults.add(action, verb="apply", **common)
        fake.faults.add(action, verb="patch", subresource="status", **common)
        await play(calls, SPACE)
        for kind, name in CHILDREN:
            await eventually(
                lambda kind=kind, name=name: there(calls, kind, SPACE, name), timeout=30
            )
        await eventually(lambda: saying(calls, "Service", SPACE, "play", Expanded=EXPANDED))
        assert not fake.faults.active
        await told(bus, key_of("before"), generation=1)
