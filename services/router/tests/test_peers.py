"""What routers tell each other, and what they make of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from inferbus_contracts.api.routers import router_load_subject
from inferbus_contracts.services import Service
from inferbus_router.adapters_peers import BusPeers, decoded, encoded
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_load import Backlog, EndpointLoad
from inferbus_router.policy_peers import (
    MOST_BLOCKS_TOLD,
    MOST_ENDPOINTS_TOLD,
    SILENT_AFTER_MS,
    TELL_ALL_EVERY_MS,
    Hearer,
    News,
    Teller,
)
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_shared.bus.hearsay import say
from services.router.tests.client import chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

ENDS = range(100, 100_000, 100)


class Side:
    """One router's view of two endpoints."""

    def __init__(self, name: str) -> None:
        self.prefixes: PrefixIndex[EndpointLoad] = PrefixIndex()
        self.teller, self.hearer = Teller(name), Hearer(name)
        self.loads = {pod: EndpointLoad(pod) for pod in ("a", "b")}
        for load in self.loads.values():
            load.prefixes, load.sent_prompts = self.prefixes, self.teller.prompts

    def tell(self, now_ms: int) -> list[News]:
        return self.teller.news(self.loads.values(), now_ms)

    def hear(self, told: list[News], now_ms: int) -> None:
        for news in told:
            self.hearer.heard(decoded(encoded(news)), self.loads, now_ms)

    def ask(self, *blocks: int) -> Ask:
        ask = Ask.of_blocks("m", 100 * len(blocks), blocks, ENDS)
        ask.look_up(self.prefixes)
        return ask


@pytest.fixture
def sides() -> tuple[Side, Side]:
    return Side("one"), Side("two")


def test_what_waits_at_one_routers_endpoint_counts_at_the_others(sides: tuple[Side, Side]) -> None:
    one, two = sides
    one.loads["a"].started(Ask("m", 5000), 100)
    one.loads["a"].started(Ask("m", 2000), 200)
    two.hear(one.tell(200), 210)

    assert two.loads["a"].peers == Backlog(2, 7000, 5000, 110, 10)
    assert two.loads["b"].peers is None
    assert two.loads["a"].predicted_wait_ms(210, 0.125) == 775


def test_ones_own_words_count_nothing(sides: tuple[Side, Side]) -> None:
    one, _ = sides
    one.loads["a"].started(Ask("m", 5000), 100)
    one.hear(one.tell(200), 210)

    assert one.loads["a"].peers is None
    assert one.hearer.is_alone


def test_nothing_is_told_twice_and_nothing_where_nothing_happens(sides: tuple[Side, Side]) -> None:
    one, _ = sides
    assert one.tell(0) == []
    one.loads["a"].started(Ask("m", 5000), 5000)

    assert len(one.tell(5000)) == 1
    assert one.tell(5100) == []
    (again,) = one.tell(5000 + TELL_ALL_EVERY_MS)
    assert again.is_whole
    assert set(again.backlogs) == {"a"}


def test_who_is_alone_speaks_only_from_time_to_time(sides: tuple[Side, Side]) -> None:
    one, _ = sides
    one.loads["a"].started(Ask("m", 5000), 5000)
    loads = one.loads.values()

    assert one.teller.news(loads, 5000, is_alone=True)
    one.loads["b"].started(Ask("m", 5000), 5010)
    assert one.teller.news(loads, 5100, is_alone=True) == []
    assert one.teller.news(loads, 6100, is_alone=True)


def test_what_ended_counts_no_more(sides: tuple[Side, Side]) -> None:
    one, two = sides
    dispatch = one.loads["a"].started(Ask("m", 5000), 100)
    two.hear(one.tell(5000), 5000)
    one.loads["a"].ended(dispatch)
    two.hear(one.tell(5100), 5100)

    assert two.loads["a"].peers is None


def test_a_message_that_was_lost_is_made_up_for(sides: tuple[Side, Side]) -> None:
    one, two = sides
    first = one.loads["a"].started(Ask("m", 5000), 100)
    one.loads["b"].started(Ask("m", 5000), 100)
    two.hear(one.tell(5000), 5000)
    one.loads["a"].ended(first)
    one.tell(5100)
    two.hear(one.tell(5000 + TELL_ALL_EVERY_MS), 6000)

    assert two.loads["a"].peers is None
    assert two.loads["b"].peers is not None


def test_rt_27_a_router_that_fell_silent_counts_no_more(sides: tuple[Side, Side]) -> None:
    one, two = sides
    one.loads["a"].started(Ask("m", 5000), 100)
    two.hear(one.tell(200), 200)
    two.hearer.forget_silent(two.loads, 200 + SILENT_AFTER_MS)
    assert two.loads["a"].peers is not None
    two.hearer.forget_silent(two.loads, 201 + SILENT_AFTER_MS)

    assert two.loads["a"].peers is None
    assert two.hearer.is_alone


def test_several_routers_add_up_and_the_first_prompt_is_the_oldest() -> None:
    one, two, three = Side("one"), Side("two"), Side("three")
    one.loads["a"].started(Ask("m", 5000), 300)
    two.loads["a"].started(Ask("m", 700), 100)
    three.hear([*one.tell(400), *two.tell(400)], 400)

    assert three.loads["a"].peers == Backlog(2, 5700, 700, 100, 0)


def test_rt_22_prompts_of_other_routers_are_found(sides: tuple[Side, Side]) -> None:
    one, two = sides
    one.loads["b"].started(one.ask(1, 2, 3), 0)
    two.hear(one.tell(5000), 5000)

    assert two.ask(1, 2, 3, 4).cached == {two.loads["b"]: 300}
    assert two.tell(5000) == [], "what one hears one doesn't tell again"


def test_an_endpoint_that_isnt_known_is_passed_over(sides: tuple[Side, Side]) -> None:
    one, two = sides
    one.loads["a"].started(one.ask(1, 2), 0)
    two.loads.pop("a")
    two.hear(one.tell(5000), 5000)

    assert two.loads["b"].peers is None


def test_what_is_told_fits_into_messages() -> None:
    teller, loads = (
        Teller("one"),
        [EndpointLoad(f"pod-{n}") for n in range(2 * MOST_ENDPOINTS_TOLD)],
    )
    for load in loads:
        load.sent_prompts = teller.prompts
        load.started(Ask.of_blocks("m", 100, range(20), ENDS), 10**12)
    told = teller.news(loads, 10**12)

    assert len(told) == 2
    assert max(len(encoded(news)) for news in told) < 700_000
    assert sum(len(blocks) for news in told for _, blocks in news.prompts) <= MOST_BLOCKS_TOLD
    assert sum(len(news.backlogs) for news in told) == len(loads)


@pytest.mark.parametrize("blocks", ["AAAA", "?", "AAAAAAAAAAA"])
def test_what_cant_be_read_is_refused(blocks: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decoded(
            b'{"router":"x","atMs":0,"prompts":[{"endpoint":"a","blocks":"%b"}]}' % blocks.encode()
        )


@asynccontextmanager
async def talking(server: NatsServer, router: RouterUnderTest, name: str) -> AsyncIterator[None]:
    """The router tells and hears."""
    async with server.connection(Service.ROUTER) as connection:
        talk = asyncio.create_task(BusPeers(connection, name).run(router.running.router.state))
        try:
            yield
        finally:
            talk.cancel()


async def test_rt_27_two_routers_on_the_bus_see_each_others_load(
    nats_server: NatsServer, start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    gate = Gate()
    engines = [await start_engine(gate), await start_engine(gate)]
    routers = [await start_router_under_test(), await start_router_under_test()]
    for router in routers:
        router.serve(*(engine.entry() for engine in engines))
    one, two = routers
    async with talking(nats_server, one, "one"), talking(nats_server, two, "two"):
        first = await one.client()
        await first.send(post_bytes(chat(prompt="x" * 40_000, messages=None)))
        await eventually(lambda: engines[0].turns or engines[1].turns)
        await eventually(lambda: peers_of(two) == [1])
        second = await two.client()
        await second.send(post_bytes(chat(prompt="y" * 4_000, messages=None)))
        await eventually(lambda: len(engines[0].turns) == len(engines[1].turns) == 1)
        gate.open()
        await first.response()
        await second.response()
        await eventually(lambda: peers_of(one) == peers_of(two) == [])


def peers_of(router: RouterUnderTest) -> list[int]:
    """What others run at the endpoints."""
    loads = router.running.router.state.fleet.endpoints()
    return [each.peers.running for each in loads if each.peers is not None]


async def test_what_a_stranger_says_stops_nobody(
    nats_server: NatsServer, start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router = await start_router_under_test()
    router.serve(engine.entry(), engine.entry(pod="again"))
    async with (
        nats_server.connection(Service.ROUTER) as stranger,
        talking(nats_server, router, "r"),
    ):
        await say(stranger, router_load_subject("x"), b"nonsense")
        told = News("x", 0, False, {name: Backlog(1, 5, 5, 0, 0) for name in names(router)}, [])
        await eventually(lambda: _told(stranger, told, router))
        assert (await (await router.client()).post(chat())).status == 200


async def _told(stranger: object, told: News, router: RouterUnderTest) -> bool:
    await say(stranger, router_load_subject("x"), encoded(told))  # type: ignore[arg-type]
    return bool(peers_of(router))


def names(router: RouterUnderTest) -> list[str]:
    """What the endpoints are called."""
    return [each.name for each in router.running.router.state.fleet.endpoints()]
