"""What kvcache-aware learns from the Redis of the reference's sidecars."""

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from inferbus_router.policy_kv_blocks import (
    block_key,
    fresh_owners,
    token_block_hashes,
    tokenize_body,
)
from services.router.tests.builders import route, route_key, server, server_key
from services.router.tests.client import chat
from services.router.tests.conftest import StartEngine, StartRouter
from services.router.tests.engine import Engine, Script, Turn
from services.router.tests.named_fleet import Fleet, plugins
from services.router.tests.redis_server import running_redis
from tests.support.eventually import eventually

TOKENS = list(range(1, 65))
BODY = chat(model="m", messages=[{"role": "user", "content": "x" * 400}])
BODY_BLOCKS = (400 + len("<|im_start|>user\n<|im_end|>\n")) // 64


def test_t061_hashes_of_blocks_are_the_sidecars() -> None:
    assert token_block_hashes(range(1, 33), 16) == [6615856733697512468, 1408734799202240436]
    assert token_block_hashes([1, 2, 3], 16) == [8866284349863400844]
    assert token_block_hashes([], 16) == []
    assert len(token_block_hashes(range(1000), 16, most_blocks=5)) == 5


@pytest.mark.parametrize(("start_seconds", "is_owner"), [(99, True), (100, False), (101, False)])
def test_t063_what_was_written_before_a_restart_is_ignored(
    start_seconds: float, is_owner: bool
) -> None:
    assert list(fresh_owners({"p.ns": "100"}, {"p.ns": start_seconds})) == ["p.ns"] * is_owner


def test_t063_a_time_that_cannot_be_read_is_fresh_and_strangers_are_left_out() -> None:
    assert list(fresh_owners({"p.ns": "soon", "q.ns": "200"}, {"p.ns": 100})) == ["p.ns"]


def test_rt_10_tools_are_tokenized_with_the_messages() -> None:
    asked = tokenize_body("m", {"messages": [], "tools": [{"name": "t"}]})

    assert asked == {
        "model": "m",
        "messages": [],
        "tools": [{"name": "t"}],
        "add_special_tokens": False,
        "add_generation_prompt": True,
        "return_token_strs": False,
    }
    assert tokenize_body("m", {"prompt": "a"}) == {
        "model": "m",
        "prompt": "a",
        "add_special_tokens": True,
        "return_token_strs": False,
    }
    assert tokenize_body("m", {"input": "a"}) is None


async def tokenizes(turn: Turn) -> None:
    if turn.target == "/tokenize":
        await turn.respond({"tokens": TOKENS, "count": len(TOKENS)})
    else:
        await turn.respond()


@pytest.fixture
def redis_port() -> Iterator[int]:
    with running_redis() as port:
        yield port


StartLearning = Callable[..., Awaitable[Fleet]]


@pytest.fixture
def start_learning(
    tmp_path: Path,
    redis_port: int,
    start_router_under_test: StartRouter,
    start_engine: StartEngine,
) -> StartLearning:
    async def start(*scripts: Script, port: int = redis_port) -> Fleet:
        path = tmp_path / "routerConfiguration.yaml"
        path.write_text(plugins("kvcache-aware"))
        router = await start_router_under_test(
            configuration_file=path, kv_redis_host="127.0.0.1", kv_redis_port=port
        )
        engines: list[Engine] = [await start_engine(each) for each in scripts]
        router.apply(
            {
                route_key("r"): route(),
                server_key("ms"): server(*(each.entry() for each in engines), model="upstream"),
            }
        )
        return Fleet(router, path, engines)

    return start


def write(port: int, engine: Engine, blocks: int, at_seconds: float) -> None:
    """What a sidecar writes about the first blocks of the prompt."""
    with Redis(port=port) as client:
        for block in token_block_hashes(TOKENS, 16)[:blocks]:
            client.hset(block_key("upstream", block), f"pod-{engine.port}.ns", str(int(at_seconds)))


def owned(fleet: Fleet) -> dict[str, int]:
    """Blocks that the router believes each engine holds."""
    (cache,) = fleet.router.running.operations.configuration.scheduling.caches()
    return {
        endpoint.pod: blocks  # type: ignore[attr-defined]
        for endpoint, blocks in cache.owners.blocks_by_endpoint().items()
    }


async def test_what_sidecars_wrote_is_known_behind_the_first_request(
    start_learning: StartLearning, redis_port: int
) -> None:
    fleet = await start_learning(tokenizes, tokenizes)
    for engine in fleet.engines:
        write(redis_port, engine, 4, time.time())
    await (await fleet.client()).post(BODY)
    await eventually(lambda: len(owned(fleet)) == 2)

    assert list(owned(fleet).values()) == [BODY_BLOCKS, BODY_BLOCKS]
    asked = [t for e in fleet.engines for t in e.turns if t.target == "/tokenize"]
    assert [turn.json["model"] for turn in asked] == ["upstream"], "nothing new is to be learned"


async def test_half_of_a_prompt_in_redis_is_half_of_it_here(
    start_learning: StartLearning, redis_port: int
) -> None:
    fleet = await start_learning(tokenizes, tokenizes)
    for engine in fleet.engines:
        write(redis_port, engine, 2, time.time())
    await (await fleet.client()).post(BODY)
    await eventually(lambda: len(owned(fleet)) == 2)

    assert sorted(owned(fleet).values()) == [BODY_BLOCKS // 2, BODY_BLOCKS]


async def test_t063_what_was_written_before_an_engine_was_not_ready_is_ignored(
    start_learning: StartLearning, redis_port: int
) -> None:
    fleet = await start_learning(tokenizes, tokenizes)
    restarted, other = fleet.engines
    write(redis_port, restarted, 4, time.time() - 10)
    for ready in (False, True):
        entries = restarted.entry(ready=ready), other.entry()
        fleet.router.apply({server_key("ms"): server(*entries, model="upstream")})
    state = fleet.router.running.router.state
    for endpoint in state.fleet.endpoints():
        while endpoint.pod == f"pod-{restarted.port}" and not endpoint.health.ejected_until_ms:
            endpoint.health.failed(state.now_ms() + 3_600_000)
    await (await fleet.client()).post(BODY)

    async def asked() -> bool:
        metrics = await fleet.router.metrics()
        return metrics.get("kthena_router_kvcache_aware_redis_duration_seconds_count") == 1

    await eventually(asked)
    assert list(owned(fleet)) == [f"pod-{other.port}"]


async def test_rt_09_no_request_waits_for_a_tokenizer(start_learning: StartLearning) -> None:
    hanging: list[Turn] = []

    async def hangs(turn: Turn) -> None:
        if turn.target == "/tokenize":
            hanging.append(turn)
            await turn.gone()
        else:
            await turn.respond()

    fleet = await start_learning(hangs)
    client = await fleet.client()
    assert (await client.post(BODY)).status == 200
    await eventually(lambda: hanging)
    assert (await client.post(BODY)).status == 200


async def test_a_redis_that_is_gone_costs_nothing_but_what_could_be_learned(
    start_learning: StartLearning,
) -> None:
    fleet = await start_learning(tokenizes, port=9)
    client = await fleet.client()
    assert (await client.post(BODY)).status == 200

    async def failed() -> bool:
        metrics = await fleet.router.metrics()
        return metrics.get("kthena_router_kvcache_aware_errors_total") == 1

    await eventually(failed)
    assert (await client.post(BODY)).status == 200
