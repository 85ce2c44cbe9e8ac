"""Limits that routers share on a Redis server: they hold together, and hold when it is gone."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any

import pytest
from redis.asyncio import Redis

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.policy_limits import Need, Reservation
from inferbus_router.policy_shared_limits import (
    Charge,
    Granted,
    SharedKeys,
    expiry_seconds,
    read_answer,
    reserve_arguments,
    shared_keys,
)
from inferbus_router.redis_link import RedisLink
from inferbus_router.shared_limits import Answer, SharedLimiter
from services.router.tests.builders import route, route_key, rule, server, server_key
from services.router.tests.client import Response, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine, Turn
from services.router.tests.redis_server import Wire, running_redis, wire_to
from tests.support.eventually import eventually

DAY_SECONDS = 86_400
T0 = 1_700_000_000_000
PATIENT_MS = 15_000
"""So that a slow machine is not taken for a server that is gone."""


@pytest.fixture(scope="module")
def redis_port() -> Iterator[int]:
    with running_redis() as port:
        yield port


@pytest.fixture
async def redis(redis_port: int) -> AsyncIterator[Redis]:
    """The server, empty."""
    client = Redis(port=redis_port, decode_responses=True)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
async def wire(redis: Redis, redis_port: int) -> AsyncIterator[Wire]:
    async with wire_to(redis_port) as wire:
        yield wire


@pytest.fixture
async def engine(start_engine: StartEngine) -> Engine:
    """Uses 5 prompt and 7 output tokens a request."""

    async def uses(turn: Turn) -> None:
        await turn.respond({"usage": {"prompt_tokens": 5, "completion_tokens": 7}})

    return await start_engine(uses)


def serve(router: RouterUnderTest, engine: Engine, address: str, **limit: Any) -> None:
    """One model whose limit is shared at the address."""
    declared = TokenLimit(**{"unit_seconds": DAY_SECONDS, "redis": address} | limit)
    router.apply({route_key("r"): route(limit=declared), server_key("ms"): server(engine.entry())})


Share = Callable[..., Awaitable[RouterUnderTest]]


@pytest.fixture
def share(start_router_under_test: StartRouter, engine: Engine, wire: Wire) -> Share:
    """Starts routers with one model whose limit they share, and waits until they do."""

    async def share(deadline_ms: int = PATIENT_MS, **limit: Any) -> RouterUnderTest:
        router = await start_router_under_test(limit_deadline_ms=deadline_ms)
        serve(router, engine, wire.address, **limit)
        await eventually(lambda: up(router))
        return router

    return share


def up(router: RouterUnderTest) -> bool:
    """Whether all servers of limits answer."""
    return router.running.router.ledger.limiters.silent_servers == 0


async def ask(router: RouterUnderTest, model: str = "m", letters: int = 20) -> Response:
    """A request of a quarter as many tokens."""
    body = json.dumps({"model": model, "prompt": "x" * letters}).encode()
    return await (await router.client()).post(body)


async def statuses(count: int, *routers: RouterUnderTest) -> list[int]:
    """Of as many requests, to one router after the other."""
    return [(await ask(routers[turn % len(routers)])).status for turn in range(count)]


def tokens(fields: Any) -> float:
    """What a key holds."""
    return round(float(fields["tokens"]), 1)


# Together.


async def test_t077_routers_share_one_quota(share: Share) -> None:
    routers = [await share(input_tokens=50) for _ in range(3)]

    assert await statuses(13, *routers) == [200] * 10 + [429] * 3
    refused = await ask(routers[0])
    assert refused.json["error"]["code"] == "rate_limit_exceeded"
    assert refused.json["error"]["message"].startswith("input token rate limit exceeded")
    assert 5_000 < int(refused.headers["retry-after"]) <= DAY_SECONDS / 10
    assert (await routers[0].metrics())["kthena_router_rate_limit_exceeded_total"] == 2
    for router in routers:
        await router.settled()


async def test_what_stands_on_the_server_is_what_the_reference_writes(
    share: Share, redis: Redis
) -> None:
    router = await share(input_tokens=50, output_tokens=50)
    assert (await ask(router)).status == 200

    async def settled() -> bool:
        left = [await redis.hgetall(f"kthena:ratelimit:m:{side}") for side in ("input", "output")]
        return [tokens(fields) for fields in left] == [45, 43]

    await eventually(settled)
    fields = await redis.hgetall("kthena:ratelimit:m:input")
    seconds, _ = await redis.time()
    assert set(fields) == {"tokens", "last_update"}
    assert abs(float(fields["last_update"]) - seconds) < 600
    assert 3 * DAY_SECONDS - 600 < await redis.ttl("kthena:ratelimit:m:output") <= 3 * DAY_SECONDS


@pytest.mark.parametrize(
    ("unit_seconds", "expected"),
    [(1, 600), (60, 600), (3_600, 10_800), (86_400, 259_200), (30 * 86_400, 7_776_000)],
)
def test_t079_keys_expire(unit_seconds: int, expected: int) -> None:
    assert expiry_seconds(unit_seconds) == expected


async def test_rt_06_a_long_answer_is_charged_in_full_and_outlives_its_key(
    share: Share, redis: Redis
) -> None:
    router = await share(output_tokens=1, unit_seconds=3_600)
    assert (await ask(router)).status == 200

    async def in_debt() -> bool:
        return tokens(await redis.hgetall("kthena:ratelimit:m:output")) == -6

    await eventually(in_debt)
    assert await redis.ttl("kthena:ratelimit:m:output") > 6 * 3_600
    refused = await ask(router)
    assert refused.json["error"]["message"].startswith("output token rate limit exceeded")
    assert 6 * 3_600 < int(refused.headers["retry-after"]) <= 7 * 3_600


async def test_rt_07_a_refusal_charges_neither_side(share: Share, redis: Redis) -> None:
    router = await share(input_tokens=100, output_tokens=7)
    assert (await ask(router)).status == 200

    async def used_up() -> bool:
        return tokens(await redis.hgetall("kthena:ratelimit:m:output")) == 0

    await eventually(used_up)
    before = await redis.hgetall("kthena:ratelimit:m:input")

    assert await statuses(5, router) == [429] * 5
    assert await redis.hgetall("kthena:ratelimit:m:input") == before


async def test_rt_07_a_request_that_fails_gets_back_what_it_paid(
    share: Share, start_engine: StartEngine, redis: Redis
) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.respond(status=400)

    router = await share(input_tokens=5)
    router.apply({server_key("ms"): server((await start_engine(refuses)).entry())})

    async def has_everything() -> bool:
        return tokens(await redis.hgetall("kthena:ratelimit:m:input")) == 5

    for _ in range(3):
        assert (await ask(router)).status == 400
        await eventually(has_everything)


async def test_a_request_that_would_never_pass_is_told_so(share: Share) -> None:
    router = await share(input_tokens=50)
    refused = await ask(router, letters=204)

    assert refused.status == 429
    assert "retry-after" not in refused.headers


async def test_every_route_has_the_server_that_it_names(
    start_router_under_test: StartRouter, engine: Engine, wire: Wire, redis: Redis
) -> None:
    router = await start_router_under_test(limit_deadline_ms=PATIENT_MS)
    with running_redis() as port:
        other = Redis(port=port, decode_responses=True)
        limit = TokenLimit(input_tokens=50, unit_seconds=DAY_SECONDS, redis=wire.address)
        elsewhere = limit.model_copy(update={"redis": f"127.0.0.1:{port}"})
        router.apply(
            {
                route_key("a"): route(model="a", limit=limit),
                route_key("b"): route(model="b", limit=elsewhere),
                server_key("ms"): server(engine.entry()),
            }
        )
        await eventually(lambda: up(router))
        assert (await ask(router, "a")).status == 200
        assert (await ask(router, "b")).status == 200

        assert await redis.keys("kthena:*") == ["kthena:ratelimit:a:input"]
        assert await other.keys("kthena:*") == ["kthena:ratelimit:b:input"]
        await router.stop()
        await other.aclose()


async def test_a_client_that_leaves_while_the_server_is_asked_pays_nothing(
    share: Share, engine: Engine, wire: Wire, redis: Redis
) -> None:
    router = await share(input_tokens=50)
    wire.silence()
    client = await router.client()
    await client.send(post_bytes(b'{"model": "m", "prompt": "xxxxxxxxxxxxxxxxxxxx"}'))
    traffic = router.running.router.ledger.traffic
    await eventually(lambda: traffic.active_requests == 1)
    client.abort()
    await eventually(lambda: traffic.active_requests == 0)
    wire.speak()

    async def given_back() -> bool:
        return tokens(await redis.hgetall("kthena:ratelimit:m:input")) == 50

    await eventually(given_back)
    assert not engine.turns
    await router.settled()


def need(prompt_tokens: int = 10, principal: str = "") -> Need:
    return Need("m", principal, prompt_tokens, None)


def test_a_principal_stands_on_the_server_as_a_digest() -> None:
    declared = TokenLimit(input_tokens=1, unit_seconds=1)
    digest = sha256(b"ann@example.org").hexdigest()[:32]

    assert shared_keys(declared, need(principal="ann@example.org"), "r") == (
        f"kthena:ratelimit:m@{digest}:input",
        f"kthena:ratelimit:m@{digest}:output",
    )
    whole = declared.model_copy(update={"per": []})
    assert shared_keys(whole, need(principal="ann"), "r").input == "kthena:ratelimit:r:input"


async def test_however_many_ask_at_once_no_more_is_granted_than_there_is(
    redis: Redis, redis_port: int
) -> None:
    """Three routers, many questions and charges in any order: what is left is what wasn't used."""
    declared = TokenLimit(input_tokens=1_000, output_tokens=10_000, unit_seconds=30 * DAY_SECONDS)
    draw = random.Random(5)
    keys = shared_keys(declared, need(), "r")
    async with AsyncExitStack() as stack:
        links = [RedisLink(f"127.0.0.1:{redis_port}", PATIENT_MS / 1000) for _ in range(3)]
        for link in links:
            stack.callback(link.stop)
        await eventually(lambda: all(link.is_up for link in links))

        async def one(link: RedisLink, wanted: int) -> int:
            answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            arguments = reserve_arguments(declared, need(wanted), 10)
            link.ask(keys, arguments, answered.set_result)
            answer = read_answer(declared, await answered)
            if not isinstance(answer, Granted):
                return 0
            link.charge(Charge(keys.output, 10_000, 30 * DAY_SECONDS, -answer.output_tokens))
            return wanted

        asked = [one(draw.choice(links), draw.randrange(1, 30)) for _ in range(300)]
        granted = sum(await asyncio.gather(*asked))

        async def all_given_back() -> bool:
            return tokens(await redis.hgetall(keys.output)) == 10_000

        await eventually(all_given_back)
        left = tokens(await redis.hgetall(keys.input))
        assert granted + left == pytest.approx(1_000, abs=1)
        assert 0 <= left < 30


async def test_a_router_that_stops_charges_what_was_used_before(share: Share, redis: Redis) -> None:
    router = await share(output_tokens=50)
    assert (await ask(router)).status == 200
    await router.stop()

    assert tokens(await redis.hgetall("kthena:ratelimit:m:output")) == 43


async def test_a_limit_that_is_taken_away_lets_those_go_on_who_wait_for_it(
    share: Share, engine: Engine, wire: Wire
) -> None:
    router = await share(3_600_000, input_tokens=50)
    wire.silence()
    waiting = asyncio.ensure_future(ask(router))
    traffic = router.running.router.ledger.traffic
    await eventually(lambda: traffic.active_requests == 1)
    assert not engine.turns
    router.apply({route_key("r"): route()})

    assert (await waiting).status == 200
    wire.speak()
    await router.settled()


# Alone.


async def test_t078_a_server_that_was_never_there_lets_pass_what_the_limit_lets_pass(
    start_router_under_test: StartRouter, engine: Engine, wire: Wire
) -> None:
    """Better than the reference, which lets everything pass."""
    await wire.cut()
    router = await start_router_under_test()
    serve(router, engine, wire.address, input_tokens=50)

    assert await statuses(12, router) == [200] * 10 + [429] * 2
    metrics = await router.metrics()
    assert metrics["inferbus_router_silent_limit_servers"] == 1
    assert metrics["inferbus_router_limit_fallbacks"] == 12


@pytest.mark.slow
async def test_t078_rt_07_a_server_that_goes_leaves_every_router_its_part(
    share: Share, wire: Wire, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """Better than the reference, which refuses everything then."""
    routers = [await share(input_tokens=100) for _ in range(2)]
    links = [router.running.router.ledger.limiters._links[wire.address] for router in routers]
    await eventually(lambda: [link.routers for link in links] == [2, 2])
    await wire.cut()
    await eventually(lambda: not any(up(router) for router in routers))

    assert await statuses(11, routers[0]) == [200] * 10 + [429]
    assert await statuses(11, routers[1]) == [200] * 10 + [429]
    assert "one part in 2" in caplog.text

    await wire.connect()
    await eventually(lambda: all(up(router) for router in routers))
    assert (await ask(routers[0])).status == 200
    assert tokens(await redis.hgetall("kthena:ratelimit:m:input")) == 95


async def test_a_server_that_is_silent_holds_no_request_up(share: Share, wire: Wire) -> None:
    router = await share(20, input_tokens=50)
    wire.silence()
    answers = await asyncio.gather(*(ask(router) for _ in range(5)))

    assert {answer.status for answer in answers} == {200}
    assert (await router.metrics())["inferbus_router_limit_fallbacks"] >= 5
    wire.speak()
    await eventually(lambda: up(router))

    await router.settled()


async def test_what_comes_too_late_is_told_as_well(redis: Redis, wire: Wire) -> None:
    link = RedisLink(wire.address, 0.02)
    answers: list[Any] = []
    declared = TokenLimit(input_tokens=50, unit_seconds=DAY_SECONDS)
    keys = shared_keys(declared, need(), "r")

    async def asked_in_silence() -> bool:
        """False where the link was just sending something else, so that it didn't ask."""
        await eventually(lambda: link.is_up)
        wire.silence()
        answers.clear()
        link.ask(keys, reserve_arguments(declared, need(), 1), answers.append)
        await eventually(lambda: answers)
        assert answers == [None]
        wire.speak()
        await eventually(lambda: link.is_up)
        return len(answers) == 2

    await eventually(asked_in_silence)
    link.stop()

    assert answers[1][0] == 1


def test_what_is_granted_too_late_is_given_back() -> None:
    link = SilentLink()
    declared = TokenLimit(input_tokens=50, output_tokens=90, unit_seconds=60, redis="r:1")
    limiter = SharedLimiter(declared, "m", link)
    answers: list[Answer] = []
    assert limiter.reserve(need(), T0, answers.append) is None
    (answered,) = link.questions
    answered(None)
    answered([1, 7])

    assert [type(each) for each in answers] == [Reservation]
    assert link.charges == [
        Charge("kthena:ratelimit:m:input", 50, 60, -10),
        Charge("kthena:ratelimit:m:output", 90, 60, -7),
    ]


class SilentLink:
    """Keeps what it is told."""

    is_up = True
    routers = 1

    def __init__(self) -> None:
        self.questions: list[Callable[[Sequence[Any] | None], None]] = []
        self.charges: list[Charge] = []

    def ask(
        self,
        keys: SharedKeys,
        arguments: Sequence[int],
        on_answer: Callable[[Sequence[Any] | None], None],
    ) -> None:
        self.questions.append(on_answer)

    def charge(self, charge: Charge) -> None:
        self.charges.append(charge)


async def test_a_server_that_refuses_is_as_good_as_none(share: Share, redis: Redis) -> None:
    router = await share(input_tokens=50)
    await redis.set("kthena:ratelimit:m:input", "not a hash")

    assert (await ask(router)).status == 200
    await redis.delete("kthena:ratelimit:m:input")
    await eventually(lambda: up(router))


async def test_a_server_that_forgot_the_scripts_is_told_them_again(
    share: Share, redis: Redis
) -> None:
    router = await share(input_tokens=50)
    await redis.script_flush()
    assert (await ask(router)).status == 200
    await eventually(lambda: up(router))
    assert (await ask(router)).status == 200

    assert await redis.exists("kthena:ratelimit:m:input")


async def test_an_address_that_is_none_is_told_and_the_limit_holds(
    router: RouterUnderTest, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    serve(router, engine, "redis:port", input_tokens=5)
    await eventually(lambda: "redis:port" in caplog.text)

    assert await statuses(2, router) == [200, 429]


async def test_a_route_that_changes_keeps_what_the_server_holds(
    share: Share, engine: Engine, wire: Wire
) -> None:
    router = await share(input_tokens=10)
    assert await statuses(3, router) == [200, 200, 429]
    serve(router, engine, wire.address, input_tokens=11)
    assert await statuses(1, router) == [429]
    router.apply({route_key("r"): route(rule("ms"))})

    assert await statuses(3, router) == [200] * 3
