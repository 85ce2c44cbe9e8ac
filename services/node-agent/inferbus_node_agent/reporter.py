"""Telling the outside what became of the pods, in order and until it is heard.

Of several statuses of a pod only the newest is told. Invariant: nothing of a pod is told after it
was finalised, and one pod that can't be reported doesn't hold up another.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_node_agent.ports import StatusSink

log = logging.getLogger("inferbus.node_agent")

_FIRST_RETRY_SECONDS = 0.5
_MOST_RETRY_SECONDS = 15.0
_SETTLED = frozenset({ErrorCode.NOT_FOUND, ErrorCode.CONFLICT})
"""The object is gone, or another pod has its name: there is nobody left to tell."""


@dataclass(slots=True)
class _Message:
    key: str
    status: Mapping[str, Any] | None
    """None: finalise."""


class StatusReporter:
    """Reports for any number of pods; a task per pod that has something to tell."""

    def __init__(self, sink: StatusSink, tasks: asyncio.TaskGroup) -> None:
        self._sink = sink
        self._tasks = tasks
        self._unsent: dict[str, _Message] = {}
        self._speaking: set[str] = set()

    def report(self, key: str, uid: str, status: Mapping[str, Any]) -> None:
        """Tell the newest status of a pod."""
        self._say(uid, _Message(key, status))

    def finalise(self, key: str, uid: str) -> None:
        """Tell that a pod has stopped."""
        self._say(uid, _Message(key, None))

    def _say(self, uid: str, message: _Message) -> None:
        self._unsent[uid] = message
        if uid not in self._speaking:
            self._speaking.add(uid)
            self._tasks.create_task(self._speak(uid))

    async def _speak(self, uid: str) -> None:
        pause_seconds = _FIRST_RETRY_SECONDS
        while (message := self._unsent.get(uid)) is not None:
            try:
                await self._tell(uid, message)
            except ProblemsError as error:
                if not _SETTLED & {problem.code for problem in error.problems}:
                    log.warning("status not told", extra={"pod": message.key, "problem": error})
                    await asyncio.sleep(pause_seconds)
                    pause_seconds = min(pause_seconds * 2, _MOST_RETRY_SECONDS)
                    continue
                log.info("pod is gone", extra={"pod": message.key, "problem": error})
            pause_seconds = _FIRST_RETRY_SECONDS
            if self._unsent.get(uid) is message:
                del self._unsent[uid]
        self._speaking.discard(uid)

    async def _tell(self, uid: str, message: _Message) -> None:
        if message.status is None:
            await self._sink.finalise(message.key, uid)
        else:
            await self._sink.report(message.key, uid, message.status)
