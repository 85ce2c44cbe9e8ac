"""The platform's processes as their supervisor knows them: which runs since when, which is due.

Invariant: a process is either running or due at some time; it is never given up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from inferbus_cli.platform.plan import ProcessPlan
from inferbus_cli.platform.policy_restarts import RestartState, ended, started
from inferbus_cli.platform.report import ProcessReport
from inferbus_shared.processes.identity import ProcessIdentity


@dataclass(slots=True)
class _Member:
    identity: ProcessIdentity | None = None
    began_ms: int = 0
    restarts: RestartState = field(default_factory=RestartState)


class Roster:
    """Processes by name; `now` is monotonic seconds, `now_ms` real milliseconds since 1970."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._members))

    def began(self, name: str, identity: ProcessIdentity, *, now: float, now_ms: int) -> None:
        """It runs; the same process told again changes nothing."""
        member = self._members.setdefault(name, _Member())
        if member.identity != identity:
            member.identity, member.began_ms = identity, now_ms
            member.restarts = started(member.restarts, now)

    def ended(self, name: str, identity: ProcessIdentity | None, *, now: float) -> None:
        """It has ended; passed over when another than the one known has (None: whichever)."""
        member = self._members.get(name)
        if member is None or member.identity is None:
            return
        if identity is None or identity == member.identity:
            member.identity = None
            member.restarts = ended(member.restarts, now)

    def failed(self, name: str, *, now: float) -> None:
        """It was due and could not be started: due again, later."""
        member = self._members[name]
        member.restarts = ended(member.restarts, now)

    def due(self, now: float) -> Iterator[str]:
        """What is to be started now."""
        for name, member in list(self._members.items()):
            if member.restarts.due_at is not None and member.restarts.due_at <= now:
                yield name

    def reports(self, plans: Mapping[str, ProcessPlan]) -> tuple[ProcessReport, ...]:
        """What others may read of each."""
        return tuple(
            ProcessReport(
                name=name,
                identity=member.identity,
                restarts=member.restarts.restarts,
                started_ms=member.began_ms,
                health_url=plans[name].health_url if name in plans else "",
            )
            for name, member in self._members.items()
        )
