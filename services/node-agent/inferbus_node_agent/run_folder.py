"""The files of the pods on this machine: what lets a new agent find everything again.

    run/<uid>/pod.json                        the pod object and the agent's state
    run/<uid>/<container>.log                 output of all attempts
    run/<uid>/containers/<container>/lock     held by the running process
    run/<uid>/containers/<container>/<n>.identity.json, <n>.exit.json
    run/<uid>/volumes/<volume>/

Invariant: an attempt with an identity file was begun; one with an exit file is over.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent.ports import Attempt
from inferbus_node_agent.state import PodState
from inferbus_shared.processes.files import read_json, write_json

_KEPT_ATTEMPTS = 2
_STATE = TypeAdapter(PodState)
_IDENTITY = ".identity.json"


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is stored of a pod."""

    document: Mapping[str, Any]
    address: str
    state: PodState | None
    """None when it was stored in a form that isn't understood any more."""


class RunFolder:
    """All pods' files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lock(self) -> int:
        """Be the only agent of this folder, until the descriptor is closed or the process dies.

        Raises `ProblemsError` (ALREADY_RUNNING).
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.root / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ProblemsError(
                Problem(
                    code=ErrorCode.ALREADY_RUNNING,
                    message="another node agent runs the pods of this folder",
                    file=str(self.root),
                    remedy="stop it first, or use another directory",
                )
            ) from None
        return descriptor

    def uids(self) -> list[str]:
        """The pods that have a folder, sorted."""
        return sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())

    def pod(self, uid: str) -> Path:
        """The folder of a pod."""
        return self.root / uid

    def create(self, uid: str) -> None:
        """Make the folder of a pod; nothing happens when there is one."""
        self.pod(uid).mkdir(mode=0o700, exist_ok=True)

    def remove(self, uid: str) -> None:
        """Remove all files of a pod. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.pod(uid))

    def store(self, uid: str, document: Mapping[str, Any], state: PodState) -> None:
        """Remember a pod. A reboot ends all processes, so nothing of it is worth a disk flush."""
        value = {
            "document": dict(document),
            "address": state.address,
            "state": _STATE.dump_python(state, mode="json"),
        }
        write_json(self.pod(uid) / "pod.json", value, durable=False)

    def load(self, uid: str) -> PodRecord | None:
        """What was stored of a pod; None when nothing that can be read was."""
        value = read_json(self.pod(uid) / "pod.json")
        if value is None or not isinstance(value.get("document"), dict):
            return None
        try:
            state = _STATE.validate_python(value.get("state"))
        except ValidationError:
            state = None
        return PodRecord(value["document"], str(value.get("address", "")), state)

    def containers(self, uid: str) -> list[str]:
        """The containers of a pod that were ever started, sorted."""
        folder = self.pod(uid) / "containers"
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def container(self, uid: str, container: str) -> Path:
        """The folder of a container; made when there is none."""
        folder = self.pod(uid) / "containers" / container
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def log(self, uid: str, container: str) -> Path:
        """Where all attempts of a container write."""
        return self.pod(uid) / f"{container}.log"

    def lock_file(self, attempt: Attempt) -> Path:
        """Held by the process of whichever attempt runs."""
        return self.container(attempt.uid, attempt.container) / "lock"

    def held(self, uid: str, container: str) -> bool:
        """Whether a process holds the lock of a container, whatever the other files say."""
        try:
            lock = os.open(self.pod(uid) / "containers" / container / "lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def identity_file(self, attempt: Attempt) -> Path:
        """Names the process of an attempt."""
        return self._of(attempt, _IDENTITY)

    def exit_file(self, attempt: Attempt) -> Path:
        """Says how an attempt ended."""
        return self._of(attempt, ".exit.json")

    def last_attempt(self, uid: str, container: str) -> Attempt | None:
        """The attempt with the highest number that was begun."""
        numbers = self._numbers(uid, container)
        return Attempt(uid, container, max(numbers)) if numbers else None

    def forget_old_attempts(self, attempt: Attempt) -> None:
        """Remove the files of attempts that no status speaks of any more."""
        for number in self._numbers(attempt.uid, attempt.container):
            if number <= attempt.number - _KEPT_ATTEMPTS:
                old = Attempt(attempt.uid, attempt.container, number)
                self.identity_file(old).unlink(missing_ok=True)
                self.exit_file(old).unlink(missing_ok=True)

    def _of(self, attempt: Attempt, suffix: str) -> Path:
        return self.container(attempt.uid, attempt.container) / f"{attempt.number}{suffix}"

    def _numbers(self, uid: str, container: str) -> list[int]:
        folder = self.pod(uid) / "containers" / container
        if not folder.is_dir():
            return []
        names = (entry.name for entry in folder.iterdir() if entry.name.endswith(_IDENTITY))
        stems = (name.removesuffix(_IDENTITY) for name in names)
        return [int(stem) for stem in stems if stem.isdecimal()]
