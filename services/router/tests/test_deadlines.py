"""The queue behind all deadlines, and the one timer."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.deadlines import DeadlineQueue
from inferbus_router.timekeeper import Timekeeper
from tests.support.eventually import eventually

STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "stop", "expire"]), st.integers(0, 5), st.integers(0, 50)),
    max_size=60,
)


@given(STEPS)
def test_exactly_those_that_are_due_expire_oldest_first(
    steps: list[tuple[str, int, int]],
) -> None:
    queue: DeadlineQueue[int] = DeadlineQueue(100)
    due_ms: dict[int, int] = {}
    now_ms = 0
    for action, item, wait_ms in steps:
        now_ms += wait_ms
        if action == "start":
            due_ms.pop(item, None)
            due_ms[item] = queue.start(item, now_ms)
        elif action == "stop":
            queue.stop(item)
            due_ms.pop(item, None)
        else:
            expected = [other for other, due in due_ms.items() if due <= now_ms]
            assert queue.take_expired(now_ms) == expected
            for other in expected:
                del due_ms[other]
        assert queue.next_due_ms() == min(due_ms.values(), default=None)
        assert queue.items() == list(due_ms)


def test_the_newest_is_taken_first() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue(100)
    for now_ms, item in enumerate("abca"):
        queue.start(item, now_ms)

    assert [queue.take_newest() for _ in range(4)] == ["a", "c", "b", None]


class Watch:
    """Milliseconds of the running loop's clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)


async def test_deadlines_of_several_lengths_pass_in_their_order() -> None:
    watch = Watch()
    keeper = Timekeeper(watch.now_ms)
    passed: list[str] = []
    long = keeper.deadlines(60, passed.append)
    short = keeper.deadlines(20, passed.append)
    never = keeper.deadlines(60_000, passed.append)
    now_ms = watch.now_ms()
    never.start("never", now_ms)
    long.start("long", now_ms)
    short.start("stopped", now_ms)
    short.start("short", now_ms)
    short.stop("stopped")

    await eventually(lambda: len(passed) == 2)
    assert passed == ["short", "long"]
    keeper.stop()


async def test_a_deadline_may_start_another_when_it_passes() -> None:
    watch = Watch()
    keeper = Timekeeper(watch.now_ms)
    passed: list[int] = []

    def again(count: int) -> None:
        passed.append(count)
        if count < 3:
            deadlines.start(count + 1, watch.now_ms())

    deadlines = keeper.deadlines(10, again)
    deadlines.start(1, watch.now_ms())

    await eventually(lambda: passed == [1, 2, 3])


async def test_virtual_time_passes_faster() -> None:
    watch = Watch()
    keeper = Timekeeper(lambda: watch.now_ms() * 1000, rate=1000)
    passed: list[str] = []
    deadlines = keeper.deadlines(20_000, passed.append)
    deadlines.start("x", watch.now_ms() * 1000)

    await eventually(lambda: passed == ["x"], timeout=5)


async def test_nothing_passes_after_the_end() -> None:
    watch = Watch()
    keeper = Timekeeper(watch.now_ms)
    passed: list[str] = []
    deadlines = keeper.deadlines(5, passed.append)
    deadlines.start("x", watch.now_ms())
    keeper.stop()
    deadlines.start("y", watch.now_ms())
    marker = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.03, marker.set_result, None)
    await marker

    assert passed == []
