"""The default scheduler behind the front door: who gets which request, and what is counted."""

from typing import Any

from services.router.tests.builders import route, route_key, server, server_key
from services.router.tests.client import chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine, Turn
from tests.support.eventually import eventually

TALK = "Once upon a time there was a router. " * 200


def talk(text: str, model: str = "m", **fields: Any) -> bytes:
    """A chat request that begins like every other."""
    return chat(model, messages=[{"role": "user", "content": TALK + text}], **fields)


def texts(*engines: Engine) -> list[int]:
    """How many requests each engine got."""
    return [len(engine.turns) for engine in engines]


def events(cached_tokens: int | None = None) -> Any:
    """A script that streams two tokens and the usage."""

    async def script(turn: Turn) -> None:
        await turn.start_stream()
        for text in "ab":
            await turn.event({"choices": [{"delta": {"content": text}}]})
        usage: dict[str, Any] = {"prompt_tokens": 1900, "completion_tokens": 2}
        if cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
        await turn.event({"choices": [], "usage": usage})
        await turn.chunk(b"data: [DONE]\n\n")
        await turn.chunk(b"")

    return script


async def test_rt_09_a_conversation_returns_to_the_endpoint_that_has_it(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine(events()) for _ in range(4)]
    router.serve(*(engine.entry() for engine in engines))
    client = await router.client()
    for turn in range(8):
        assert (await client.post(talk("x" * 300 * turn, stream=True))).status == 200

    assert sorted(texts(*engines)) == [0, 0, 0, 8]
    await router.settled()


async def test_rt_11_prefixes_are_known_by_the_name_upstream(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """Two routes with different names lead to the same model."""
    engines = [await start_engine(events()) for _ in range(4)]
    entries = [engine.entry() for engine in engines]
    router.apply(
        {
            route_key("r"): route(model="m"),
            route_key("s"): route(model="alias"),
            server_key("ms"): server(*entries, model="upstream"),
        }
    )
    client = await router.client()
    for turn in range(8):
        await client.post(talk("x" * turn, model="m" if turn % 2 else "alias", stream=True))

    assert sorted(texts(*engines)) == [0, 0, 0, 8]


async def test_rt_11_an_adapter_shares_nothing_with_its_base(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine(events()) for _ in range(2)]
    router.apply(
        {
            route_key("r"): route(model="m", adapters=["tuned"]),
            server_key("ms"): server(*(engine.entry() for engine in engines), model="m"),
        }
    )
    await (await router.client()).post(talk("", stream=True))
    state = router.running.router.state
    known = len(state.fleet.prefixes)
    await (await router.client()).post(talk("", model="tuned", stream=True))

    assert len(state.fleet.prefixes) == 2 * known


async def test_rt_14_a_long_prompt_keeps_others_away_until_its_first_token(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """Engines send the head of a stream before they have processed the prompt."""

    async def only_a_head(turn: Turn) -> None:
        await turn.start_stream()
        await turn.gone()

    engines = [await start_engine(only_a_head), await start_engine(only_a_head)]
    router.serve(*(engine.entry() for engine in engines))
    first = await router.client()
    await first.send(post_bytes(chat(prompt="x" * 400_000, messages=None, stream=True)))
    await eventually(lambda: sum(texts(*engines)) == 1)
    await first.reader.readuntil(b"\r\n\r\n")
    busy, other = sorted(engines, key=lambda engine: -len(engine.turns))
    for _ in range(4):
        client = await router.client()
        await client.send(post_bytes(chat(stream=True)))
    await eventually(lambda: texts(busy, other) == [1, 4])


async def test_rt_22_what_an_engine_says_it_held_is_learned_from(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    known = []
    for cached_tokens in (0, 100_000):
        engines = [await start_engine(events(cached_tokens)) for _ in range(2)]
        router.serve(*(engine.entry() for engine in engines))
        client = await router.client()
        for turn in range(20):
            await client.post(talk(f"{turn} " * 9000, stream=True))
        known.append(len(router.running.router.state.fleet.prefixes))

    assert known[0] < known[1] / 2


async def test_a_request_without_a_choice_costs_no_index(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    await (await router.client()).post(talk(""))

    assert len(router.running.router.state.fleet.prefixes) == 0


async def test_an_endpoint_that_is_gone_leaves_nothing_in_the_index(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine(events()), await start_engine(events())]
    router.serve(*(engine.entry() for engine in engines))
    await (await router.client()).post(talk("", stream=True))
    fleet = router.running.router.state.fleet
    assert len(fleet.prefixes) > 0
    router.serve()

    assert len(fleet.prefixes) == 0
    assert fleet.by_name == {}
