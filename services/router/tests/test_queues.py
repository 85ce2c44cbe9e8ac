"""Lines: what lets requests go, and that nothing is lost or kept."""

import pytest

from inferbus_router.policy_load import EndpointLoad
from inferbus_router.policy_queue import Applicant, Usage
from inferbus_router.queue_settings import QueueSettings
from inferbus_router.queues import Queues, make_queues
from inferbus_router.timekeeper import Timekeeper
from tests.support.eventually import eventually

COMPLETED = Usage(1, 1, completed=True)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now_ms = 1000

    def __call__(self) -> int:
        return self.now_ms


class Item:
    """A request for the endpoints of a test; `fails` where it ends as soon as its turn comes."""

    def __init__(
        self, queues: Queues, endpoints: list[EndpointLoad] | None, fails: bool = False
    ) -> None:
        self.state = "waits"
        self._queues = queues
        self._endpoints = endpoints
        self._fails = fails

    def endpoints(self) -> list[EndpointLoad] | None:
        return self._endpoints

    def turn_came(self) -> None:
        self.state = "runs"
        if self._endpoints:
            self._endpoints[0].in_flight += 1
        if self._fails:
            self.end(Usage())

    def turn_missed(self, waited_ms: int) -> None:
        self.state = f"missed after {waited_ms}"

    def join(self, model: str = "m", principal: str = "", session: str = "") -> "Item":
        applicant = Applicant(
            principal=principal,
            session=session,
            prompt_tokens=10,
            max_output_tokens=None,
            body_bytes=100,
        )
        if self._queues.join(self, model, applicant, 1000):
            self.turn_came()
        return self

    def end(self, usage: Usage = COMPLETED, now_ms: int = 1000) -> None:
        if self.state == "runs" and self._endpoints:
            self._endpoints[0].in_flight -= 1
        self.state = "ended"
        self._queues.leave(self, usage, now_ms)


def queues_of(clock: Clock, **settings: object) -> Queues:
    made = make_queues(QueueSettings(**settings), Timekeeper(clock))
    assert made is not None
    return made


def fair(clock: Clock, **settings: object) -> Queues:
    return queues_of(clock, enable_fairness_scheduling=True, **settings)


def boost(clock: Clock, **settings: object) -> Queues:
    return queues_of(clock, enable_session_boost=True, **settings)


async def test_without_a_setting_there_is_no_queue() -> None:
    assert make_queues(QueueSettings(), Timekeeper(Clock())) is None


async def test_rt_25_endpoints_are_the_limit() -> None:
    queues = fair(Clock(), queue_least_in_flight=3, queue_most_in_flight=3)
    pod = EndpointLoad("pod")
    items = [Item(queues, [pod]).join() for _ in range(5)]
    assert [item.state for item in items] == ["runs"] * 3 + ["waits"] * 2
    items[1].end()

    assert [item.state for item in items] == ["runs", "ended", "runs", "runs", "waits"]


async def test_rt_25_an_endpoint_that_keeps_up_gets_more() -> None:
    queues = fair(Clock(), queue_least_in_flight=1, queue_most_in_flight=4, queue_backlog_ms=100)
    pod = EndpointLoad("pod")
    assert [Item(queues, [pod]).join().state for _ in range(5)] == ["runs"] * 4 + ["waits"]


async def test_a_limit_that_is_set_is_kept_whatever_endpoints_take() -> None:
    queues = fair(Clock(), fairness_max_concurrent=2)
    items = [Item(queues, [EndpointLoad("pod")]).join() for _ in range(3)]
    other = Item(queues, [EndpointLoad("pod")]).join(model="n")

    assert [item.state for item in (*items, other)] == ["runs", "runs", "waits", "runs"]


async def test_who_needs_no_endpoint_does_not_wait() -> None:
    queues = fair(Clock(), fairness_max_concurrent=1)
    Item(queues, [EndpointLoad("pod")]).join()

    assert Item(queues, None).join(model="n").state == "runs"


async def test_rt_26_room_that_nobody_of_the_line_made_is_found() -> None:
    clock = Clock()
    queues = boost(clock, session_boost_inflight_per_pod=1)
    pod = EndpointLoad("pod")
    pod.in_flight = 1
    item = Item(queues, [pod]).join()
    assert item.state == "waits"
    pod.in_flight = 0
    clock.now_ms += 10_000

    await eventually(lambda: item.state == "runs")


async def test_turns_that_do_not_come_in_time_are_missed() -> None:
    clock = Clock()
    queues = fair(clock, fairness_max_concurrent=1, fairness_queue_timeout="5s")
    running = Item(queues, [EndpointLoad("pod")]).join()
    late = Item(queues, [EndpointLoad("pod")]).join()
    clock.now_ms += 5_000
    await eventually(lambda: late.state == "missed after 5000")

    assert len(queues) == 0
    running.end()
    assert queues.lines["m"].running == 0
    assert Item(queues, [EndpointLoad("pod")]).join().state == "runs"


@pytest.mark.parametrize("timeout", ["0", "-1s"])
async def test_a_boost_timeout_can_be_switched_off(timeout: str) -> None:
    assert boost(Clock(), session_boost_timeout=timeout).rules.timeout_ms == 0


async def test_a_place_is_kept_for_the_session_that_has_just_completed() -> None:
    clock = Clock()
    queues = boost(clock, session_boost_inflight_per_pod=1, session_boost_grace_period="100ms")
    pod = EndpointLoad("pod")
    first = Item(queues, [pod]).join(session="s")
    stranger = Item(queues, [pod]).join(session="x")
    first.end()
    assert stranger.state == "waits"
    following = Item(queues, [pod]).join(session="s")
    clock.now_ms += 10_000
    await eventually(lambda: following.state == "runs")

    assert stranger.state == "waits"


async def test_requests_and_bytes_that_wait_are_bounded() -> None:
    queues = fair(Clock(), fairness_max_concurrent=1, queue_requests=2, queue_bytes=250)
    Item(queues, [EndpointLoad("pod")]).join()
    assert queues.has_space(250)
    assert not queues.has_space(251)
    leaving = Item(queues, [EndpointLoad("pod")]).join()
    Item(queues, [EndpointLoad("pod")]).join()
    assert not queues.has_space(1)
    leaving.end()

    assert queues.has_space(150)


async def test_many_that_fail_at_once_end_one_after_the_other() -> None:
    queues = fair(Clock(), fairness_max_concurrent=1)
    endpoints = [EndpointLoad("pod")]
    running = Item(queues, endpoints).join()
    items = [Item(queues, endpoints, fails=True).join() for _ in range(4000)]
    running.end()

    assert {item.state for item in items} == {"ended"}
    line = queues.lines["m"]
    assert (line.running, len(queues), line.dequeued) == (0, 0, 4001)


async def test_lines_go_with_their_models_once_they_are_empty() -> None:
    queues = fair(Clock(), fairness_max_concurrent=1)
    gone = Item(queues, [EndpointLoad("pod")]).join(model="gone")
    Item(queues, [EndpointLoad("pod")]).join(model="stays").end()
    queues.follow(["stays"])
    assert set(queues.lines) == {"gone", "stays"}
    gone.end()
    queues.follow(["stays"])

    assert set(queues.lines) == {"stays"}
