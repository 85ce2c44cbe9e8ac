"""The supervisor: not needed while all is well, patient with what isn't, thorough at the end."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from inferbus_cli.platform.overview import SUPERVISOR
from inferbus_cli.platform.policy_restarts import delay
from inferbus_shared.processes.identity import ProcessIdentity, alive, identify
from tests.bench.processes import ProcessUse, platform_processes
from tests.scenario.fleet import PATIENCE_SECONDS
from tests.support.eventually import eventually
from tests.support.load import running_load
from tests.support.platform import Platform, engines, model_manifests, running_platform

pytestmark = pytest.mark.slow

RESTARTS = 4
"""The last of them so late that the supervisor can be stopped in time to look at it."""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with running_platform("--startup", "0") as platform:
        platform.apply(*model_manifests("chat"))
        yield platform


async def serves(platform: Platform, model: str = "chat") -> None:
    await eventually(lambda: platform.complete(model).status == 200, PATIENCE_SECONDS)


def pids(platform: Platform) -> dict[str, int | None]:
    """Of everything but the supervisor."""
    return {name: row.pid for name, row in platform.processes().items() if name != SUPERVISOR}


async def restarted(platform: Platform, name: str) -> None:
    """`kill -9`, and wait until it runs again."""
    killed = platform.kill(name)
    await eventually(lambda: platform.processes()[name].pid not in (None, killed), PATIENCE_SECONDS)


async def test_everything_works_without_the_supervisor_and_up_adopts_it(
    platform: Platform,
) -> None:
    await serves(platform)
    before, containers = pids(platform), engines(platform)
    async with running_load(platform.router) as load:
        load.clients("chat", 2, max_tokens=2)
        killed = platform.kill(SUPERVISOR)
        await eventually(lambda: platform.processes()[SUPERVISOR].state == "down")
        platform.apply(*model_manifests("second"))
        await serves(platform, "second")

        assert "is up" in platform.up().stdout
        assert platform.pid(SUPERVISOR) != killed
        assert pids(platform) == before
        assert containers.items() <= engines(platform).items()
        await restarted(platform, "metrics-collector")
        await eventually(lambda: load.counts.good > 50, PATIENCE_SECONDS)
        assert load.counts.bad == 0, load.counts


async def test_up_of_a_platform_that_is_up_says_so_and_changes_nothing(
    platform: Platform,
) -> None:
    before, supervisor = pids(platform), platform.pid(SUPERVISOR)
    again = platform.up()
    assert "already" in again.stdout
    assert platform.router in again.stdout
    assert (pids(platform), platform.pid(SUPERVISOR)) == (before, supervisor)


async def test_what_keeps_dying_is_started_ever_later_and_shown(platform: Platform) -> None:
    name = "model-downloader"
    others = {other: pid for other, pid in pids(platform).items() if other != name}
    seen = platform.processes()[name].restarts
    for number in range(1, RESTARTS):
        began = time.monotonic()
        await restarted(platform, name)
        assert time.monotonic() - began >= delay(number)
        assert platform.processes()[name].restarts == seen + number
    assert delay(RESTARTS) > delay(RESTARTS - 1) > delay(1)

    platform.kill(name)
    await eventually(lambda: platform.processes()[name].restarts == seen + RESTARTS)
    supervisor = platform.pid(SUPERVISOR)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        status = platform.inferbus("status", check=False)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    shown = next(line for line in status.stdout.splitlines() if line.startswith(name))
    assert shown.split()[:4] == [name, "down", "-", str(seen + RESTARTS)]
    assert status.returncode != 0
    assert f"{name} doesn't run" in status.stderr

    await eventually(lambda: platform.processes()[name].pid, PATIENCE_SECONDS)
    assert {other: pid for other, pid in pids(platform).items() if other != name} == others


async def test_down_ends_all_of_one_platform_and_nothing_of_another(platform: Platform) -> None:
    await serves(platform)
    before, containers = pids(platform), engines(platform)
    with running_platform("--startup", "0") as other:
        other.apply(*model_manifests("chat"), *model_manifests("other"))
        await serves(other)
        await serves(other, "other")
        assert platform.complete("other").status == 404
        theirs, ours = living(other), living(platform)
        assert len(theirs) > len(pids(other))
        assert theirs.keys().isdisjoint(ours)

        other.down()

        assert not [use for use, identity in theirs.values() if alive(identity)]
        assert not platform_processes(other.directory)
        assert (pids(platform), engines(platform)) == (before, containers)
        assert platform.complete("chat").status == 200
        assert other.inferbus("down").stdout.startswith("nothing was running")


def living(platform: Platform) -> dict[int, tuple[ProcessUse, ProcessIdentity]]:
    """Every process of the platform by pid, found on the machine."""
    found = platform_processes(platform.directory)
    identities = {pid: identify(pid) for pid in found}
    return {pid: (found[pid], one) for pid, one in identities.items() if one is not None}
