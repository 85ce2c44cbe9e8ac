import contextlib
import json
import os
from pathlib import Path
from typing import Any

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import children, listeners, release
from inferbus_shared.processes.identity import (
    ProcessIdentity,
    kill_group,
    read_identity,
    wait_until_gone,
)
from inferbus_shared.processes.records import ExitRecord, SpawnSpec, read_exit_record
from inferbus_shared.processes.start import start_fork_server


class Sandbox:
    """A fork server of a test's own, and its processes' files."""

    def __init__(self, folder: Path, socket_path: Path | None = None) -> None:
        """With `socket_path` the fork server there is used, which others use too."""
        self.folder = folder
        self.shared = socket_path is not None
        self.socket_path = socket_path or folder / "fork.sock"
        self.log_path = self.socket_path.with_name("fork.log")

    def start(self, preload: tuple[str, ...] = ()) -> bool:
        own = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(":")]
        environment = {**os.environ, "PYTHONPATH": ":".join(part for part in own if part)}
        return start_fork_server(self.socket_path, preload, self.log_path, environment)

    def client(self) -> ForkServerClient:
        return ForkServerClient(self.socket_path)

    def server(self) -> ProcessIdentity:
        """The identity of the server that answers now."""
        with self.client() as client:
            line = client._socket.recv(65536).splitlines()[0]
        return ProcessIdentity.from_dict(json.loads(line)["server"])

    def kill_server(self) -> None:
        assert not self.shared, "other tests use this fork server too"
        server = self.server()
        kill_group(server)
        assert wait_until_gone([server], 10) == []

    def spec(self, name: str, entry_point: str = "", *argv: str, **more: Any) -> SpawnSpec:
        fields: dict[str, Any] = {
            "name": name,
            "entry_point": entry_point and f"process_stand_ins:{entry_point}",
            "argv": argv,
            "environment": {"PATH": os.environ["PATH"]},
            "directory": str(self.folder),
            "log_path": str(self.folder / f"{name}.log"),
            "identity_path": str(self.folder / f"{name}.identity.json"),
            "exit_path": str(self.folder / f"{name}.exit.json"),
        }
        return SpawnSpec(**{**fields, **more})

    def identity(self, name: str) -> ProcessIdentity | None:
        return read_identity(self.folder / f"{name}.identity.json")

    def exit_record(self, name: str) -> ExitRecord | None:
        return read_exit_record(self.folder / f"{name}.exit.json")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def clean_up(self) -> None:
        if not self.shared:
            with contextlib.suppress(ProblemsError, OSError, IndexError):
                kill_group(self.server())
        found = [read_identity(path) for path in self.folder.glob("*.identity.json")]
        identities = [identity for identity in found if identity is not None]
        for identity in identities:
            kill_group(identity)
        assert wait_until_gone(identities, 10) == []
        if self.shared:
            self._wait_until_forgotten()

    def _wait_until_forgotten(self) -> None:
        """Names are free again once the server has noticed that their processes are gone."""
        with self.client() as client:
            while client.call(children()):
                client.next_event(10)
            for name in client.call(listeners()):
                client.call(release(name))
