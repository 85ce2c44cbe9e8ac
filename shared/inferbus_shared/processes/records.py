"""What is said about processes: how to start one, which ones run, how one ended.

These travel between the fork server and its clients and lie in files beside the processes. They are
plain data; each `from_dict` raises `ValueError` for anything `to_dict` doesn't produce.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from inferbus_shared.processes.files import read_json, write_json
from inferbus_shared.processes.identity import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnSpec:
    """A process to start: a Python function in a forked process, or a program."""

    name: str
    """Unique among the running children of a fork server."""
    entry_point: str = ""
    """`module:function`; called with `argv`, its result is the exit code. Empty: execute `argv`."""
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole environment; nothing is inherited."""
    directory: str
    """Working directory."""
    log_path: str
    """Where standard output and standard error are appended."""
    identity_path: str
    """Written by the process itself before anything of the entry point runs; must not exist yet."""
    exit_path: str
    """Where the fork server writes the `ExitRecord`."""
    lock_path: str = ""
    """Held with flock(2) as long as the process lives; empty: no lock."""
    title: str = ""
    """Shown by ps(1); empty: the name."""
    listeners: Mapping[int, str] = field(default_factory=dict)
    """Descriptor number in the process → name of a socket the fork server keeps."""
    passed: tuple[int, ...] = ()
    """Descriptor numbers in the process for the descriptors that are sent along, in their order."""

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        value = asdict(self)
        value["listeners"] = {str(number): name for number, name in self.listeners.items()}
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        fields = dict(value)
        listeners = fields.pop("listeners", {})
        try:
            return cls(
                argv=tuple(str(part) for part in fields.pop("argv", ())),
                passed=tuple(int(number) for number in fields.pop("passed", ())),
                listeners={int(number): str(name) for number, name in listeners.items()},
                **fields,
            )
        except (TypeError, AttributeError) as error:
            raise ValueError(f"not a process to start: {error}") from error


@dataclass(frozen=True, slots=True)
class ChildInfo:
    """A process that a fork server watches."""

    name: str
    identity: ProcessIdentity
    exit_path: str
    adopted: bool = False
    """It was started by an earlier fork server: nobody will learn its exit status."""

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        try:
            identity = ProcessIdentity.from_dict(value["identity"])
            return cls(value["name"], identity, value["exit_path"], value["adopted"])
        except KeyError as error:
            raise ValueError(f"a child without {error}") from error


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How a process ended. Without code and signal nobody was there to see it."""

    identity: ProcessIdentity
    finished_ms: int
    """Real milliseconds since 1970 at which the end was noticed."""
    code: int | None = None
    """Exit code, 0 to 255."""
    signal: int | None = None
    """The signal that ended it."""

    @property
    def known(self) -> bool:
        """Whether the exit status was seen."""
        return self.code is not None or self.signal is not None

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        try:
            identity = ProcessIdentity.from_dict(value["identity"])
            return cls(identity, value["finished_ms"], value["code"], value["signal"])
        except KeyError as error:
            raise ValueError(f"an exit record without {error}") from error


def write_exit_record(path: Path, record: ExitRecord) -> None:
    """Store how a process ended, atomically. Raises OSError."""
    write_json(path, record.to_dict())


def read_exit_record(path: Path) -> ExitRecord | None:
    """The record at `path`; None when there is none that can be read."""
    value = read_json(path)
    try:
        return None if value is None else ExitRecord.from_dict(value)
    except ValueError:
        return None
