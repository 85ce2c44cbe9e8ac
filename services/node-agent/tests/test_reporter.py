import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent import reporter
from inferbus_node_agent.reporter import StatusReporter
from tests.support.eventually import eventually


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "_FIRST_RETRY_SECONDS", 0.001)


def refused(code: ErrorCode) -> ProblemsError:
    return ProblemsError(Problem(code=code, message="refused"))


class Sink:
    """Remembers, or fails as it is told; while `gate` is clear nothing gets through."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.fail: dict[str, list[ProblemsError]] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def report(self, key: str, uid: str, status: Mapping[str, Any]) -> None:
        await self._take(uid, status)

    async def finalise(self, key: str, uid: str) -> None:
        await self._take(uid, None)

    async def _take(self, uid: str, status: Mapping[str, Any] | None) -> None:
        await self.gate.wait()
        if self.fail.get(uid):
            raise self.fail[uid].pop(0)
        self.told.append((uid, status and status["n"]))


async def test_only_the_newest_status_is_told() -> None:
    sink = Sink()
    async with asyncio.TaskGroup() as tasks:
        statuses = StatusReporter(sink, tasks)
        sink.gate.clear()
        for number in range(5):
            statuses.report("Pod/default/a", "a", {"n": number})
            await asyncio.sleep(0)
        sink.gate.set()
    assert sink.told in ([("a", 0), ("a", 4)], [("a", 4)])


async def test_it_is_told_until_it_is_heard() -> None:
    sink = Sink()
    sink.fail["a"] = [refused(ErrorCode.BUS_UNREACHABLE) for _ in range(3)]
    async with asyncio.TaskGroup() as tasks:
        StatusReporter(sink, tasks).report("Pod/default/a", "a", {"n": 1})
    assert sink.told == [("a", 1)]


async def test_one_pod_does_not_hold_up_another() -> None:
    sink = Sink()
    sink.fail["a"] = [refused(ErrorCode.BUS_UNREACHABLE) for _ in range(1000)]
    async with asyncio.TaskGroup() as tasks:
        statuses = StatusReporter(sink, tasks)
        statuses.report("Pod/default/a", "a", {"n": 1})
        statuses.report("Pod/default/b", "b", {"n": 2})
        await eventually(lambda: sink.told == [("b", 2)])
        sink.fail.clear()


@pytest.mark.parametrize("code", [ErrorCode.NOT_FOUND, ErrorCode.CONFLICT])
async def test_a_pod_that_is_gone_is_not_told_of(code: ErrorCode) -> None:
    sink = Sink()
    sink.fail["a"] = [refused(code)]
    async with asyncio.TaskGroup() as tasks:
        StatusReporter(sink, tasks).report("Pod/default/a", "a", {"n": 1})
    assert sink.told == []


async def test_the_end_is_the_last_that_is_told() -> None:
    sink = Sink()
    sink.fail["a"] = [refused(ErrorCode.BUS_UNREACHABLE)]
    async with asyncio.TaskGroup() as tasks:
        statuses = StatusReporter(sink, tasks)
        statuses.report("Pod/default/a", "a", {"n": 1})
        await asyncio.sleep(0)
        statuses.finalise("Pod/default/a", "a")
    assert sink.told[-1] == ("a", None)
