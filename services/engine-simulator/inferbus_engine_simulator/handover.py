"""Prefill hands its key-value blocks to decode, as SGLang's engines do: in a room.

The engine that prefills serves its rooms on a port of their own; the one that decodes asks there
and is answered once the blocks are computed. Invariant: however a request ends, its side leaves the
room, so that the other is not left waiting for longer than the timeout.
"""

import asyncio
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import aiohttp
from aiohttp import web

from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.policy_api_errors import ApiError, bad_request
from inferbus_engine_simulator.policy_api_requests import Call
from inferbus_engine_simulator.policy_rooms import Rooms, Side, Stage

ROOM_PATH = "/simulator/rooms/{number}"


class Handover:
    """One engine's part in it."""

    def __init__(self, runner: EngineRunner, timeout_ms: int) -> None:
        """`timeout_ms` is how long a side waits for the other, virtual time."""
        self._runner = runner
        self._timeout_ms = timeout_ms
        self._rooms = Rooms()
        self._news = asyncio.Event()

    def app(self) -> web.Application:
        """What the engine that prefills serves to those that decode."""
        app = web.Application()
        app.router.add_post(ROOM_PATH, self._decode_waits)
        return app

    @asynccontextmanager
    async def of(self, call: Call) -> AsyncIterator[None]:
        """Inside, the call may be computed; the blocks of a prefill are there when it is left.

        Raises `ApiError`: 400 where the call names no room, 500 where the other side doesn't come,
        or leaves.
        """
        options = self._runner.options
        if not options.meets_in_rooms:
            yield
        elif len(call.rooms) != len(call.prompts):
            raise bad_request("a disaggregated request needs a bootstrap_room for each prompt")
        elif options.kv_role == Side.DECODE:
            await self._fetched(call)
            yield
        else:
            async with self._prefilled(call.rooms):
                yield

    @asynccontextmanager
    async def _prefilled(self, rooms: Iterable[int]) -> AsyncIterator[None]:
        with ExitStack() as stack:
            for number in rooms:
                stack.enter_context(self._inside(number, Side.PREFILL))
            for number in rooms:
                await self._until(number, Stage.MET)
            yield
            for number in rooms:
                self._rooms.computed(number)
            self._tell()

    @contextmanager
    def _inside(self, number: int, side: Side) -> Iterator[None]:
        try:
            self._rooms.enter(number, side)
        except ValueError as error:
            raise bad_request(str(error), "bootstrap_room") from None
        self._tell()
        try:
            yield
        finally:
            self._rooms.leave(number, side)
            self._tell()

    async def _until(self, number: int, wanted: Stage) -> None:
        try:
            async with asyncio.timeout(self._runner.real_seconds(self._timeout_ms)):
                while (stage := self._rooms.stage(number)) not in (wanted, Stage.BROKEN):
                    await self._news.wait()
        except TimeoutError:
            raise _failed(f"nobody came to the bootstrap room {number} in time") from None
        if stage is Stage.BROKEN:
            raise _failed(f"the other side left the bootstrap room {number}")

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # The side of decode.

    async def _decode_waits(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        try:
            with self._inside(number, Side.DECODE):
                await self._until(number, Stage.COMPUTED)
        except ApiError as error:
            return web.Response(status=error.status, text=error.message)
        return web.Response()

    async def _fetched(self, call: Call) -> None:
        port = call.bootstrap_port or self._runner.options.bootstrap_port
        host = f"[{call.bootstrap_host}]" if ":" in call.bootstrap_host else call.bootstrap_host
        base = f"http://{host}:{port}"
        # The engine that prefills says when it has waited too long.
        unlimited = aiohttp.ClientTimeout(total=None)
        try:
            async with aiohttp.ClientSession(timeout=unlimited) as session, TaskGroup() as group:
                for number in call.rooms:
                    group.create_task(_ask(session, base + ROOM_PATH.format(number=number)))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None


async def _ask(session: aiohttp.ClientSession, url: str) -> None:
    try:
        async with session.post(url) as response:
            said = await response.text()
    except aiohttp.ClientError as error:
        raise _failed(f"the prefill engine can't be asked: {error}") from None
    if response.status != 200:
        raise _failed(said)


def _failed(reason: str) -> ApiError:
    return ApiError(500, "InternalServerError", f"the KV transfer failed: {reason}")
