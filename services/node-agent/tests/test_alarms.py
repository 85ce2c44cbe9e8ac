import asyncio

from inferbus_node_agent.alarms import Alarms
from tests.support.eventually import eventually


async def test_alarms_ring_in_their_order() -> None:
    rung: list[str] = []
    alarms = Alarms(rung.append)
    for key, delay in (("c", 0.03), ("a", 0.01), ("b", 0.02), ("now", -5)):
        alarms.set(key, delay)
    await eventually(lambda: len(rung) == 4)
    assert rung == ["now", "a", "b", "c"]


async def test_a_new_time_replaces_the_old() -> None:
    rung: list[str] = []
    alarms = Alarms(rung.append)
    alarms.set("a", 0.0)
    alarms.set("a", 0.05)
    alarms.set("b", 600)
    alarms.set("b", 0.01)
    await eventually(lambda: "a" in rung)
    assert rung == ["b", "a"]


async def test_a_cleared_alarm_is_silent() -> None:
    rung: list[str] = []
    alarms = Alarms(rung.append)
    alarms.set("a", 0.0)
    alarms.set("b", 0.01)
    alarms.clear("a")
    alarms.clear("unknown")
    await eventually(lambda: rung == ["b"])


async def test_an_alarm_may_set_itself_again() -> None:
    rung: list[str] = []

    def ring(key: str) -> None:
        rung.append(key)
        if len(rung) < 5:
            alarms.set(key, 0.001)

    alarms = Alarms(ring)
    alarms.set("a", 0.0)
    await eventually(lambda: len(rung) == 5)


async def test_one_timer_serves_them_all() -> None:
    alarms = Alarms(lambda _: None)
    loop = asyncio.get_running_loop()
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    for number in range(100):
        alarms.set(f"key-{number}", 600 + number)
    assert len(loop._scheduled) == before + 1  # type: ignore[attr-defined]
    alarms.close()
