"""What routers tell each other, on core NATS: told and heard several times a second.

Invariant: no request waits for it, and without the bus each router goes on by what it knows itself.
"""

import asyncio
import logging
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence

from pydantic import ValidationError

from inferbus_contracts.api.routers import (
    EndpointBacklog,
    RouterLoad,
    SentPrompt,
    every_router_load_subject,
    router_load_subject,
)
from inferbus_router.policy_load import Backlog
from inferbus_router.policy_peers import TELL_EVERY_MS, Hearer, News, Teller
from inferbus_router.state import RouterState
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.hearsay import listen, say

log = logging.getLogger("inferbus.router")


def encoded(news: News) -> bytes:
    """As it crosses the bus."""
    load = RouterLoad(
        router=news.router,
        at_ms=news.at_ms,
        whole=news.is_whole,
        endpoints=[
            EndpointBacklog(endpoint=name, **backlog._asdict())
            for name, backlog in news.backlogs.items()
        ],
        prompts=[
            SentPrompt(endpoint=name, blocks=_packed(blocks)) for name, blocks in news.prompts
        ],
    )
    return load.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def decoded(body: bytes) -> News:
    """The inverse of `encoded`; raises `ValueError` where it can't be read."""
    load = RouterLoad.from_json(body)
    return News(
        router=load.router,
        at_ms=load.at_ms,
        is_whole=load.whole,
        backlogs={
            each.endpoint: Backlog(
                each.running,
                each.waiting_tokens,
                each.first_tokens,
                each.first_sent_ms,
                each.processed_ms,
            )
            for each in load.endpoints
        },
        prompts=[(each.endpoint, _unpacked(each.blocks)) for each in load.prompts],
    )


def _packed(blocks: Sequence[int]) -> str:
    return b64encode(struct.pack(f"<{len(blocks)}Q", *blocks)).decode()


def _unpacked(blocks: str) -> Sequence[int]:
    data = b64decode(blocks, validate=True)
    try:
        return struct.unpack(f"<{len(data) // 8}Q", data)
    except struct.error as error:
        raise ValueError(str(error)) from None


class BusPeers:
    """Keeps one router and the others informed of each other."""

    def __init__(self, connection: Connection, router: str) -> None:
        """`router` is this one's name, of which there is no second."""
        self._connection = connection
        self._subject = router_load_subject(router)
        self._teller = Teller(router)
        self._hearer = Hearer(router)

    async def run(self, state: RouterState) -> None:
        """Tell and hear until cancelled."""
        state.fleet.note_prompts(self._teller.prompts)
        end = await listen(
            self._connection, every_router_load_subject(), lambda body: self._heard(state, body)
        )
        try:
            while True:
                await asyncio.sleep(TELL_EVERY_MS / 1000)
                await self._tell(state)
        finally:
            state.fleet.note_prompts(None)
            await end()

    async def _tell(self, state: RouterState) -> None:
        now_ms = state.now_ms()
        self._hearer.forget_silent(state.fleet.by_name, now_ms)
        endpoints = state.fleet.endpoints()
        for news in self._teller.news(endpoints, now_ms, self._hearer.is_alone):
            await say(self._connection, self._subject, encoded(news))

    def _heard(self, state: RouterState, body: bytes) -> None:
        try:
            news = decoded(body)
        except (ValidationError, ValueError) as error:
            log.warning("what a router told can't be read", extra={"problem": str(error)})
            return
        self._hearer.heard(news, state.fleet.by_name, state.now_ms())
