"""Groups of a prefill and a decode engine behind a router, as short as tests want them."""

import asyncio
from dataclasses import dataclass
from typing import Any

from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine, Script, Turn, answers

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
BLOCKS = {"do_remote_prefill": True, "remote_host": "10.0.0.1", "remote_block_ids": [1, 2, 3]}


@dataclass
class Group:
    """A prefill and a decode engine that work together."""

    prefill: Engine
    decode: Engine


async def start_group(
    start_engine: StartEngine, prefill: Script | None = None, decode: Script = answers
) -> Group:
    """A group that works, unless the scripts say otherwise."""
    return Group(await start_engine(prefill or prefills), await start_engine(decode))


def serve_groups(router: RouterUnderTest, *groups: Group, **fields: Any) -> None:
    """A route for `m` to these groups, of which the first is preferred while all are idle."""
    entries = [
        engine.entry(pod=f"{role}-{number}", role=role, group=str(number))
        for number, group in enumerate(groups, start=1)
        for role, engine in (("prefill", group.prefill), ("decode", group.decode))
    ]
    router.serve(*entries, **fields)


async def prefills(turn: Turn) -> None:
    """A prefill engine that works, and says where its blocks are."""
    await turn.respond({"id": "p", "usage": USAGE, "kv_transfer_params": BLOCKS})


async def fails(turn: Turn) -> None:
    """500, from an engine that is broken."""
    await turn.respond({"error": {"message": "out of memory"}}, status=500)


async def refuses(turn: Turn) -> None:
    """400: the request is wrong."""
    await turn.respond({"error": {"message": "too long"}}, status=400)


async def closes(turn: Turn) -> None:
    """No response."""
    turn.close()


async def streams(turn: Turn) -> None:
    """Three events, usage where it was asked for, and the end."""
    await turn.start_stream("text/event-stream; charset=utf-8")
    for text in "abc":
        await turn.event({"choices": [{"index": 0, "delta": {"content": text}}]})
    if (turn.json.get("stream_options") or {}).get("include_usage"):
        await turn.event({"choices": [], "usage": USAGE})
    await turn.chunk(b"data: [DONE]\n\n")
    await turn.chunk(b"")


class Stays:
    """A script that answers nothing, and tells when the router has gone."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, turn: Turn) -> None:
        self.came.set()
        await turn.gone()
        self.left.set()


class BreaksOff:
    """A stream that ends after its first event, when it is told to."""

    def __init__(self) -> None:
        self.may_break = asyncio.Event()

    async def __call__(self, turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
        await self.may_break.wait()
        turn.close(reset=True)


def in_turn(*scripts: Script) -> Script:
    """Each request gets the next script; the last one stays."""
    left = list(scripts)

    async def script(turn: Turn) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(turn)

    return script


async def unavailable(turn: Turn) -> None:
    await turn.respond({"error": {"message": "busy"}}, status=503)


def decoded(*groups: Group) -> int:
    return sum(len(group.decode.turns) for group in groups)
