"""A reconciler that is stopped in the middle of its work, and goes on when another took over."""

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from inferbus_contracts.services import Service
from inferbus_contracts.topology import MEMBER_TTL_SECONDS
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes.faults import Call
from tests.kube.test_reconciler_service import Stage
from tests.support.eventually import eventually
from tests.support.instances import running_instances
from tests.support.kube import KubeServer
from tests.support.kube_fleet import KubeFleet, install_definitions
from tests.support.nats import NatsServer

SPACE = "default"
ONE, OTHER = "one", "other"
LEASES = 3
MANY, FEW = 60, 3
CREATED_BEFORE_THE_STOP = 8


class StopsAt:
    """Stops a process when it asks for its so-many-th pod."""

    def __init__(self, pid: int, number: int) -> None:
        self.pid = pid
        self.left = number
        self.stopped = asyncio.Event()

    def __call__(self, call: Call) -> None:
        if call.user != ONE or (call.verb, call.plural) != ("create", "pods"):
            return
        self.left -= 1
        if self.left == 0:
            os.kill(self.pid, signal.SIGSTOP)
            self.stopped.set()


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_who_was_stopped_in_a_scale_up_does_nothing_again(
    nats_server: NatsServer,
    fake_kube_server: KubeServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Meanwhile the scale-up was completed and taken back: its names are free once more."""
    fake = fake_kube_server.fake
    assert fake is not None
    monkeypatch.setenv("INFERBUS_WORKLOAD_RECONCILER_SUBSTRATE", "kubernetes")
    monkeypatch.setenv("INFERBUS_KUBE_SERVER", fake.url)
    monkeypatch.setenv("INFERBUS_KUBE_NAMESPACES", SPACE)
    _identify(fake, ONE, tmp_path, monkeypatch)
    service = Service.WORKLOAD_RECONCILER
    async with (
        fake_kube_server.calls() as calls,
        nats_server.bus(Service.SPEC_WATCHER) as watcher,
        nats_server.bus(Service.AUTOSCALER) as decider,
    ):
        await install_definitions(calls)
        stage = Stage(KubeFleet(calls, SPACE), watcher, decider, nats_server)
        with running_instances(nats_server, service, [ONE]) as (pid,):
            try:
                await stage.create(replicas=1)
                await stage.settled(1)
                stop = StopsAt(pid, CREATED_BEFORE_THE_STOP)
                fake.before_each_write(stop)
                await stage.fleet.change("x", {"replicas": MANY})
                await stage.told()
                await eventually(stop.stopped.is_set, timeout=30)
                stopped_at = time.monotonic()
                _identify(fake, OTHER, tmp_path, monkeypatch)
                with running_instances(nats_server, service, [OTHER]):
                    await stage.settled(MANY)
                    await stage.fleet.change("x", {"replicas": FEW})
                    await stage.told()
                    await stage.settled(FEW)
                    before = await stage.fleet.uids()
                    lapse = LEASES * MEMBER_TTL_SECONDS
                    await eventually(lambda: time.monotonic() > stopped_at + lapse, timeout=60)
                    assert _created(fake) == {f"x-{group}-main-0-0": 1 for group in range(MANY)}
                    fake.record.clear()
                    os.kill(pid, signal.SIGCONT)
                    await eventually(lambda: _looks_at_leases(fake, ONE))
                    await stage.fleet.change("x", {"replicas": FEW + 1})
                    await stage.told()
                    await stage.settled(FEW + 1)
                    assert before.items() <= (await stage.fleet.uids()).items()
            finally:
                os.kill(pid, signal.SIGCONT)
    assert _created(fake) == {f"x-{FEW}-main-0-0": 1}
    assert fake.record.count("delete", "pods") == 0
    asked = {call.name or call.body["metadata"]["name"] for call in _asks_for_pods(fake, ONE)}
    assert asked <= {f"x-{FEW}-main-0-0"}, "what was planned before the stop isn't even tried"


def _identify(
    fake: FakeKubernetes, user: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that start from now on are this user to the API server."""
    file = folder / user
    file.write_text(fake.add_user(user))
    monkeypatch.setenv("INFERBUS_KUBE_TOKEN_FILE", str(file))


def _asks_for_pods(fake: FakeKubernetes, user: str) -> list[Call]:
    return [one for one in fake.record.writes() if (one.user, one.plural) == (user, "pods")]


def _created(fake: FakeKubernetes) -> Counter[str]:
    return Counter(
        call.body["metadata"]["name"]
        for user in (ONE, OTHER)
        for call in _asks_for_pods(fake, user)
        if call.verb == "create" and call.code == 201
    )


def _looks_at_leases(fake: FakeKubernetes, user: str) -> bool:
    """Whether it is at work again: leases are looked at every few seconds, whatever happens."""
    return any((call.user, call.plural) == (user, "leases") for call in fake.record.calls)
