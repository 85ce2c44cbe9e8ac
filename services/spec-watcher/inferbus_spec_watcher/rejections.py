"""spec.rejected: what was refused, and why, stands in the log too."""

import logging
from collections.abc import Sequence

from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.events.spec import SpecRejected
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_shared.bus.bus import Bus

log = logging.getLogger("inferbus.spec-watcher")

MAX_PROBLEMS = 50


class Rejections:
    """Writes what was refused."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def record(self, manager: str, problems: Sequence[Problem]) -> None:
        """One event for a refused unit; the refusal stands even when it can't be written."""
        body = SpecRejected(manager=manager, problems=list(problems[:MAX_PROBLEMS]))
        key = _key(manager, problems)
        now_ms = self._bus.clock.now_ms()
        id_ = event_id(SpecRejected.event_type, key, f"{digest(body.to_dict())}|{now_ms}")
        try:
            await self._bus.publish(self._bus.event(body, key, id=id_))
        except ProblemsError as error:
            log.warning("a rejection could not be recorded", extra={"problem": str(error)})


def _key(manager: str, problems: Sequence[Problem]) -> ObjectKey:
    for problem in problems:
        if problem.object:
            try:
                return ObjectKey.parse(problem.object)
            except ValueError:
                continue
    return ObjectKey("Document", NO_NAMESPACE, manager)
