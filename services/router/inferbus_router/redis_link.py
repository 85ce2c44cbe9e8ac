"""The connection to one Redis server that limits are shared on.

Questions are sent together, whatever came in while the last ones were under way, so that a busy
router costs the server few round trips. Invariant: every question is answered by its deadline,
with None where the server didn't in time; from then on, until the server answers again, none is
asked. What the server grants too late is told as well, so that it can be given back.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from inferbus_router.policy_shared_limits import (
    CHARGE,
    PRESENCE,
    RESERVE,
    ROUTERS_KEY,
    Charge,
    SharedKeys,
    charge_arguments,
)

log = logging.getLogger("inferbus.router")

OnAnswer = Callable[[Sequence[Any] | None], None]
"""Takes what a script returned; None: there is no answer in time, but one may come later."""

_PRESENCE_SECONDS = 2.0
_GONE_SECONDS = 10
"""A router that wasn't heard of for that long doesn't count any more."""
_CONNECT_SECONDS = 2.0
"""A server that takes longer to answer is taken for gone."""
_REDIS_PORT = 6379
_FIRST_RETRY_SECONDS = 0.1
_LONGEST_RETRY_SECONDS = 5.0
_TELL_SECONDS = 60.0
"""What goes on and on is logged that often."""


class _Question(NamedTuple):
    keys: SharedKeys
    arguments: Sequence[int]
    on_answer: OnAnswer
    due_seconds: float
    """By the event loop's clock."""


class RedisLink:
    """Asks the server at one address."""

    def __init__(self, address: str, deadline_seconds: float) -> None:
        """`address` is `host:port`."""
        self.is_up = False
        self.routers = 1
        """That share limits on the server, as far as was heard last; this one among them."""
        self._address = address
        self._deadline_seconds = deadline_seconds
        self._loop = asyncio.get_running_loop()
        self._name = uuid4().hex
        self._questions: list[_Question] = []
        self._in_flight: list[_Question] = []
        self._charges: dict[str, Charge] = {}
        self._heard_seconds = -_PRESENCE_SECONDS
        self._told_seconds = -_TELL_SECONDS
        self._was_served = False
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.ensure_future(self._run())

    def ask(self, keys: SharedKeys, arguments: Sequence[int], on_answer: OnAnswer) -> None:
        """Have tokens reserved; only while the link is up."""
        due_seconds = self._loop.time() + self._deadline_seconds
        self._questions.append(_Question(keys, arguments, on_answer, due_seconds))
        self._wake()

    def charge(self, charge: Charge) -> None:
        """Take tokens or give some back, as soon as that is possible; once, if at all."""
        held = self._charges.get(charge.key)
        if held is not None:
            charge = charge._replace(tokens=charge.tokens + held.tokens)
        self._charges[charge.key] = charge
        self._wake()

    def _wake(self) -> None:
        self._idle.clear()
        self._work.set()

    async def flush(self) -> None:
        """Wait until everything is charged, as long as for an answer; not at all while the server
        is gone.
        """
        if not self.is_up:
            return
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await self._idle.wait()
        except TimeoutError:
            log.warning("not all tokens were charged on the Redis server %s", self._address)

    def stop(self) -> None:
        """Let go of the connection; who still waits is told that there is no answer."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._connect_again_and_again()
        finally:
            self._go_down()

    async def _connect_again_and_again(self) -> None:
        wait_seconds = _FIRST_RETRY_SECONDS
        while True:
            try:
                await self._serve()
            except (RedisError, OSError, TimeoutError, ValueError) as error:
                self._go_down()
                self._tell(
                    f"does not answer ({str(error) or type(error).__name__}); until it does, this"
                    f" router gives out one part in {self.routers} of the limits shared there"
                )
            if self._was_served:
                wait_seconds = _FIRST_RETRY_SECONDS
            self._was_served = False
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _LONGEST_RETRY_SECONDS)

    def _tell(self, what: str) -> None:
        now_seconds = self._loop.time()
        if self._was_served or now_seconds >= self._told_seconds + _TELL_SECONDS:
            self._told_seconds = now_seconds
            log.warning("the Redis server %s %s", self._address, what)

    def _go_down(self) -> None:
        self.is_up = False
        unanswered = self._in_flight + self._questions
        self._in_flight, self._questions = [], []
        for question in unanswered:
            self._loop.call_soon(question.on_answer, None)

    async def _serve(self) -> None:
        """Connect, and answer questions for as long as that works."""
        host, port = _endpoint(self._address)
        client = Redis(
            host=host,
            port=port,
            single_connection_client=True,
            socket_connect_timeout=_CONNECT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                scripts = _Scripts(*[await client.script_load(text) for text in _TEXTS])
            self._heard_seconds = -_PRESENCE_SECONDS
            self._work.set()
            self.is_up = self._was_served = True
            log.info("limits are shared on the Redis server %s", self._address)
            while True:
                await self._wait_for_work()
                await self._send(client, scripts)
        finally:
            await client.aclose()

    async def _wait_for_work(self) -> None:
        try:
            async with asyncio.timeout(_PRESENCE_SECONDS):
                await self._work.wait()
        except TimeoutError:
            return

    async def _send(self, client: Redis, scripts: "_Scripts") -> None:
        """One round trip: all questions there are, all charges, and that this router is alive."""
        self._work.clear()
        questions = self._in_flight = self._questions
        self._questions = []
        charges, self._charges = self._charges, {}
        pipeline = client.pipeline(transaction=False)
        for question in questions:
            pipeline.evalsha(scripts.reserve, 2, *question.keys, *question.arguments)
        for charge in charges.values():
            pipeline.evalsha(scripts.charge, 1, charge.key, *charge_arguments(charge))
        is_heard = self._loop.time() >= self._heard_seconds + _PRESENCE_SECONDS
        if is_heard:
            self._add_presence(pipeline, scripts)
        answers = await self._answers(pipeline, questions)
        self._in_flight = []
        if is_heard:
            self._hear(answers[-1])
        self._hand_out(questions, answers)
        self.is_up = True
        if not self._questions and not self._charges:
            self._idle.set()

    async def _answers(self, pipeline: Any, questions: list[_Question]) -> list[Any]:
        """What comes back, late as it may be; at the deadline nobody waits for it any more.

        Raises TimeoutError where it doesn't come at all.
        """
        executing = asyncio.ensure_future(pipeline.execute(raise_on_error=False))
        try:
            now_seconds = self._loop.time()
            due_seconds = now_seconds + self._deadline_seconds
            if questions:
                due_seconds = min(due_seconds, questions[0].due_seconds)
            await asyncio.wait({executing}, timeout=due_seconds - now_seconds)
            if not executing.done():
                self._go_down()
            async with asyncio.timeout(_CONNECT_SECONDS):
                answers: list[Any] = await executing
                return answers
        finally:
            executing.cancel()

    def _hand_out(self, questions: list[_Question], answers: list[Any]) -> None:
        failures = [answer for answer in answers if isinstance(answer, Exception)]
        for question, answer in zip(questions, answers, strict=False):
            usable = None if isinstance(answer, Exception) else answer
            self._loop.call_soon(question.on_answer, usable)
        for failure in failures:
            if isinstance(failure, NoScriptError):
                raise failure
            self._tell(f"refuses a question, which is decided about here: {failure}")

    def _add_presence(self, pipeline: Any, scripts: "_Scripts") -> None:
        pipeline.evalsha(scripts.presence, 1, ROUTERS_KEY, self._name, _GONE_SECONDS)

    def _hear(self, answer: Any) -> None:
        self._heard_seconds = self._loop.time()
        if isinstance(answer, int):
            self.routers = max(1, answer)


def _endpoint(address: str) -> tuple[str, int]:
    """Host and port; Redis' own port where there is none. Raises ValueError."""
    host, _, port = address.rpartition(":")
    return (host.strip("[]"), int(port)) if host else (port, _REDIS_PORT)


class _Scripts(NamedTuple):
    reserve: str
    charge: str
    presence: str


_TEXTS = _Scripts(RESERVE, CHARGE, PRESENCE)
