"""What the supervisor says of itself and its processes, in one file that others read.

Written on every change, atomically; a reader never needs the supervisor to be alive.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from inferbus_contracts.errors import Problem
from inferbus_shared.processes.files import read_json, write_json
from inferbus_shared.processes.identity import ProcessIdentity, alive

STARTING = "starting"
READY = "ready"
STOPPING = "stopping"
FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ProcessReport:
    """One process as the supervisor sees it."""

    name: str
    identity: ProcessIdentity | None
    restarts: int
    started_ms: int
    """Real milliseconds since 1970."""
    health_url: str = ""

    @property
    def running(self) -> bool:
        """Whether the process lives now."""
        return self.identity is not None and alive(self.identity)


@dataclass(frozen=True, kw_only=True)
class SupervisorReport:
    """The whole file."""

    supervisor: ProcessIdentity
    phase: str
    step: str
    """What is being done, in a few words."""
    problems: tuple[Problem, ...] = ()
    processes: tuple[ProcessReport, ...] = field(default=())

    @property
    def running(self) -> bool:
        """Whether the supervisor lives now."""
        return alive(self.supervisor)

    def write(self, path: Path) -> None:
        """Store the report. Raises OSError."""
        body = asdict(self) | {"problems": [problem.to_dict() for problem in self.problems]}
        write_json(path, body, durable=False)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The stored report; None where there is none that can be read."""
        body = read_json(path)
        if body is None:
            return None
        try:
            return cls(
                supervisor=ProcessIdentity.from_dict(body["supervisor"]),
                phase=body["phase"],
                step=body["step"],
                problems=tuple(Problem.model_validate(item) for item in body["problems"]),
                processes=tuple(_process(item) for item in body["processes"]),
            )
        except (KeyError, TypeError, ValueError):
            return None


def _process(item: dict[str, Any]) -> ProcessReport:
    identity = item["identity"]
    known = ProcessIdentity.from_dict(identity) if identity else None
    return ProcessReport(**(item | {"identity": known}))
