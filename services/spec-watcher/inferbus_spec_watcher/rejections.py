"""spec.rejected: what was refused, and why, stands in the log too."""

import logging
from collections.abc import Sequence

from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.spec import SpecRejected
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_shared.bus.bus import Bus

log = logging.getLogger("inferbus.spec-watcher")

MAX_PROBLEMS = 50

_NO_MISTAKES = frozenset(
    {
        ErrorCode.BUS_UNREACHABLE,
        ErrorCode.BUS_FULL,
        ErrorCode.BUS_REFUSED,
        ErrorCode.BUS_TIMEOUT,
        ErrorCode.ALREADY_EXISTS,
        ErrorCode.CONFLICT,
        ErrorCode.KUBE_UNREACHABLE,
        ErrorCode.KUBE_REFUSED,
        ErrorCode.KUBE_THROTTLED,
        ErrorCode.KUBE_FAILED,
    }
)
"""Bus or API server took nothing, or somebody else was first: the documents may be right."""


class Rejections:
    """Writes what was refused."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def record(
        self, manager: str, problems: Sequence[Problem], *, unit: str = "", again: bool = True
    ) -> None:
        """One event for a refused unit; the refusal stands even when it can't be written.

        `unit` names what was refused where no problem names an object. Without `again` nothing is
        written when the last event about it says the same; and never when no document was wrong.
        """
        if not tells_mistakes(problems):
            return
        body = SpecRejected(manager=manager, problems=list(problems[:MAX_PROBLEMS]))
        key = _key(unit or manager, problems)
        now_ms = self._bus.clock.now_ms()
        id_ = event_id(SpecRejected.event_type, key, f"{digest(body.to_dict())}|{now_ms}")
        try:
            if again or not await self._is_told(key, body):
                await self._bus.publish(self._bus.event(body, key, id=id_))
        except ProblemsError as error:
            log.warning("a rejection could not be recorded", extra={"problem": str(error)})

    async def _is_told(self, key: ObjectKey, body: SpecRejected) -> bool:
        last = await self._bus.last(SpecRejected.event_type, key)
        return last is not None and digest(last.data.to_dict()) == digest(body.to_dict())


def tells_mistakes(problems: Sequence[Problem]) -> bool:
    """Whether any of the problems is one of the documents."""
    return any(problem.code not in _NO_MISTAKES for problem in problems)


def _key(unit: str, problems: Sequence[Problem]) -> ObjectKey:
    for problem in problems:
        if problem.object:
            try:
                return ObjectKey.parse(problem.object)
            except ValueError:
                continue
    return ObjectKey("Document", NO_NAMESPACE, unit.replace("/", ":"))
