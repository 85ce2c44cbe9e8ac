"""Work lists: every key is looked at, never twice at a time, and failures come back."""

import asyncio

from inferbus_shared.worklist import Worklist
from tests.support.eventually import eventually


async def test_a_key_added_many_times_is_worked_on_once() -> None:
    seen: list[str] = []
    worklist = Worklist[str]("test")

    async def work(key: str) -> None:
        seen.append(key)

    for _ in range(5):
        worklist.add("a")
    worklist.add("b")
    running = asyncio.create_task(worklist.run(work))
    await eventually(lambda: worklist.idle)
    assert seen == ["a", "b"]
    running.cancel()


async def test_a_key_added_during_its_work_is_worked_on_again_not_beside() -> None:
    worklist = Worklist[str]("test")
    gate = asyncio.Event()
    active = most = total = 0

    async def work(_: str) -> None:
        nonlocal active, most, total
        active += 1
        total += 1
        most = max(most, active)
        await gate.wait()
        active -= 1

    worklist.add("a")
    running = asyncio.create_task(worklist.run(work, concurrency=4))
    await eventually(lambda: active == 1)
    worklist.add("a")
    worklist.add("a")
    gate.set()
    await eventually(lambda: worklist.idle)
    assert (total, most) == (2, 1)
    running.cancel()


async def test_a_failing_key_comes_back_and_others_go_on() -> None:
    worklist = Worklist[str]("test")
    calls: list[str] = []

    async def work(key: str) -> None:
        calls.append(key)
        if key == "bad" and calls.count("bad") < 3:
            raise RuntimeError("not yet")

    worklist.add("bad")
    worklist.add("good")
    running = asyncio.create_task(worklist.run(work))
    await eventually(lambda: calls.count("bad") == 3)
    assert calls[:2] == ["bad", "good"]
    running.cancel()


async def test_work_that_asks_for_it_is_done_again() -> None:
    worklist = Worklist[str]("test")
    calls = 0

    async def work(_: str) -> float | None:
        nonlocal calls
        calls += 1
        return 0.001 if calls < 3 else None

    worklist.add("a")
    running = asyncio.create_task(worklist.run(work))
    await eventually(lambda: calls == 3)
    running.cancel()
