"""Engines that misbehave in every order, on real sockets.

Whatever they do: the router goes on, each request is answered once or its connection ends, no
answer is another request's, and nothing stays behind: no load, no held request, no connection in
use.
"""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.router.tests.builders import route, route_key, rule, server, server_key
from services.router.tests.client import BrokenOffError, Client, chat
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine, Script, Turn
from services.router.tests.engines_that_fail import closes, half_a_head, resets, thinks
from tests.support.eventually import eventually


async def answers(turn: Turn) -> None:
    await turn.respond({"n": turn.json["n"], "usage": {"prompt_tokens": 3}})


async def streams(turn: Turn) -> None:
    await turn.start_stream()
    for _ in range(3):
        await turn.event({"n": turn.json["n"], "choices": [{}]})
    await turn.chunk(b"data: [DONE]\n\n")
    await turn.chunk(b"")


async def answers_behind_interim_responses(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
    await answers(turn)


async def answers_and_closes(turn: Turn) -> None:
    await answers(turn)
    turn.close()


async def answers_more_than_it_says(turn: Turn) -> None:
    body = json.dumps({"n": turn.json["n"]}).encode()
    await turn.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
        + b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
        + b'{"n": -1}'
    )
    await turn.gone()


async def answers_less_than_it_says(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
    turn.close()


async def head_alone(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    turn.close()


async def garbage(turn: Turn) -> None:
    await turn.send(b"\x16\x03\x01\x00\x00 SSH-2.0\r\n\r\n")
    await turn.gone()


async def garbage_in_a_stream(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"n": turn.json["n"], "choices": [{}]})
    await turn.send(b"not a chunk\r\n")
    await turn.gone()


async def a_stream_that_breaks(turn: Turn) -> None:
    await turn.start_stream()
    await turn.event({"n": turn.json["n"], "choices": [{}]})
    turn.close(reset=True)


async def busy(turn: Turn) -> None:
    await turn.respond({"n": turn.json["n"]}, status=503, Retry_After="1")


async def refuses(turn: Turn) -> None:
    await turn.respond({"n": turn.json["n"]}, status=422)


async def nothing_to_say(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 204 No Content\r\n\r\n")


BEHAVIOURS: tuple[Script, ...] = (
    answers,
    streams,
    answers_behind_interim_responses,
    answers_and_closes,
    answers_more_than_it_says,
    answers_less_than_it_says,
    closes,
    resets,
    half_a_head,
    head_alone,
    garbage,
    garbage_in_a_stream,
    a_stream_that_breaks,
    thinks,
    busy,
    refuses,
    nothing_to_say,
)
TIMEOUT_MS = 40
"""For the first byte: what says nothing is given up soon, and what is given up too soon is all the
same to these tests.
"""


class Scene:
    """Two engines that do what a list says, turn by turn, whichever is asked; then they work."""

    def __init__(self, behaviours: list[Script]) -> None:
        self._left = iter(behaviours)

    async def __call__(self, turn: Turn) -> None:
        await next(self._left, answers)(turn)


async def ask(client: Client, number: int, model: str = "m") -> int | None:
    """The status of the answer, which is to this request; None where the connection ended."""
    try:
        response = await client.post(chat(model, n=number, stream=True))
    except (BrokenOffError, ConnectionError):
        return None
    if response.status != 204 and b"error" not in response.body:
        lines = response.body.decode().replace("data: ", "").split("\n")
        said = [json.loads(line) for line in lines if line and line != "[DONE]"]
        assert {each["n"] for each in said} == {number}, "another request's answer"
    return response.status


async def play(
    router: RouterUnderTest, engines: list[Engine], behaviours: list[Script], attempts: int
) -> None:
    scene = Scene(behaviours)
    for engine in engines:
        engine.script = scene
    router.serve(
        *(engine.entry() for engine in engines),
        timeout_ms=TIMEOUT_MS,
        retry_attempts=attempts,
        retry_interval_ms=1,
    )
    client = await router.client()
    for number in range(len(behaviours)):
        status = await ask(client, number)
        assert status in (None, 200, 204, 422, 502, 503, 504)
        if status is None:
            client.close()
            client = await router.client()
    await router.settled()
    client.close()
    for endpoint in router.running.router.state.fleet.endpoints():
        endpoint.health.succeeded()
    for engine in engines:
        engine.script = answers
    assert (await ask(await router.client(), -7)) in (200, 504), "the router still works"
    await router.settled()


_SCENES = st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=6)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(behaviours=_SCENES, attempts=st.integers(0, 2))
async def test_engines_that_misbehave_in_any_order(
    router: RouterUnderTest, start_engine: StartEngine, behaviours: list[Script], attempts: int
) -> None:
    engines = [await start_engine(), await start_engine()]
    await play(router, engines, behaviours, attempts)


@pytest.mark.slow
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(behaviours=_SCENES, attempts=st.integers(0, 2))
async def test_engines_that_misbehave_for_longer(
    router: RouterUnderTest, start_engine: StartEngine, behaviours: list[Script], attempts: int
) -> None:
    engines = [await start_engine(), await start_engine()]
    await play(router, engines, behaviours, attempts)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda script: script.__name__)
async def test_each_misbehaviour_while_others_are_served(
    router: RouterUnderTest, start_engine: StartEngine, behaviour: Script
) -> None:
    """One engine's failure is nobody else's."""
    bad, good = await start_engine(behaviour), await start_engine(answers)
    router.apply(
        {
            route_key("bad"): route(rule("bad"), model="bad"),
            route_key("good"): route(rule("good"), model="good"),
            server_key("bad"): server(bad.entry(), timeout_ms=TIMEOUT_MS),
            server_key("good"): server(good.entry()),
        }
    )
    unlucky = [await router.client() for _ in range(4)]
    suffering = asyncio.gather(*(ask(each, -number, "bad") for number, each in enumerate(unlucky)))
    statuses = [await ask(await router.client(), number, "good") for number in range(4)]
    await suffering

    assert statuses == [200] * 4
    await router.settled()


async def test_connections_after_a_storm_are_idle_or_closed(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine(Scene(list(BEHAVIOURS) * 3))
    router.serve(engine.entry(), timeout_ms=TIMEOUT_MS)
    for number in range(len(BEHAVIOURS) * 3):
        client = await router.client()
        await ask(client, number)
        client.close()
    await router.settled()

    (endpoint,) = router.running.router.state.fleet.endpoints()
    await eventually(lambda: engine.open == len(endpoint.idle.items()))
