"""The folder of one platform: every path in it, and what it remembers about itself.

Two platforms are two folders. Invariant: what is needed to find, adopt or end a running platform
stands in its folder and nowhere else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_contracts.services import Service
from inferbus_shared.settings import BusSettings

DEFAULT_DIRECTORY = Path(".inferbus")
VARIABLE = "INFERBUS_DIR"


def _service_name(name: str) -> str:
    return Service(name).value


Port = Annotated[int, Field(ge=1, le=65_535)]
ServiceName = Annotated[str, AfterValidator(_service_name)]


@dataclass(frozen=True, kw_only=True)
class PlatformState:
    """What `up` chose and every later command needs."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    nats_port: Port
    router_port: Port
    node: str = "local"
    clock_rate: Annotated[float, Field(gt=0)] = 1.0
    engines: Annotated[str, Field(pattern="^(simulated|real)$")] = "simulated"
    instances: dict[ServiceName, Annotated[int, Field(ge=1)]] = field(default_factory=dict)
    """How many of a service, by name, where it isn't the usual number."""
    environment: dict[str, str] = field(default_factory=dict)
    """INFERBUS_… settings given to all services."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The stored state; None where there is none. Raises `ProblemsError` when it is broken."""
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValidationError as error:
            raise ProblemsError(*(_broken(path, one) for one in error.errors())) from None


@dataclass(frozen=True)
class PlatformDirectory:
    """The paths of one platform."""

    root: Path

    @classmethod
    def of(cls, directory: Path | None) -> Self:
        """The folder named by `--dir`, by INFERBUS_DIR, or `.inferbus` here."""
        chosen = directory or os.environ.get(VARIABLE) or DEFAULT_DIRECTORY
        return cls(Path(chosen).absolute())

    @property
    def state_file(self) -> Path:
        """What `up` chose."""
        return self.root / "platform.json"

    @property
    def run(self) -> Path:
        """Identities and sockets of the platform's processes."""
        return self.root / "run"

    @property
    def fork_server_socket(self) -> Path:
        """Where the processes' parent listens."""
        return self.run / "fork.sock"

    @property
    def supervisor_file(self) -> Path:
        """What the supervisor says of itself and its processes."""
        return self.run / "supervisor.json"

    @property
    def logs(self) -> Path:
        """One file per process."""
        return self.root / "logs"

    @property
    def nats(self) -> Path:
        """Configuration and store of the NATS server."""
        return self.root / "nats"

    @property
    def credentials(self) -> Path:
        """One file per user of the bus, mode 0600."""
        return self.root / "credentials"

    @property
    def secrets(self) -> Path:
        """Values of Secrets, mode 0600."""
        return self.root / "secrets"

    @property
    def node(self) -> Path:
        """The node agent's folder: run folders and volumes of pods."""
        return self.root / "node"

    @property
    def pods(self) -> Path:
        """Run folders of pods, one per uid."""
        return self.node / "run"

    @property
    def models(self) -> Path:
        """The cache of model artifacts."""
        return self.root / "models"

    @property
    def manifests(self) -> Path:
        """The folder whose manifests are kept applied."""
        return self.root / "manifests"

    def credentials_of(self, service: Service) -> Path:
        """The file with one user's password."""
        return self.credentials / f"{service.value}.json"

    def state(self) -> PlatformState:
        """What `up` chose.

        Raises `ProblemsError`: NOT_RUNNING where nothing was ever started, BAD_SETTING where the
        record of it is broken.
        """
        state = PlatformState.read(self.state_file)
        if state is None:
            raise ProblemsError(_no_platform(self.root))
        return state

    def require_platform(self) -> None:
        """Raise `ProblemsError` (NOT_RUNNING) where nothing was ever started."""
        if not self.state_file.exists():
            raise ProblemsError(_no_platform(self.root))

    def write_state(self, state: PlatformState) -> None:
        """Remember what was chosen. Raises OSError."""
        temporary = self.state_file.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(state), indent=2, sort_keys=True) + "\n")
        temporary.replace(self.state_file)

    def bus_settings(self, service: Service, instance: str) -> BusSettings:
        """How `service` reaches the platform's bus; environment variables win."""
        if "INFERBUS_NATS_URL" in os.environ:
            return BusSettings(instance=instance)
        return BusSettings(
            nats_url=f"nats://127.0.0.1:{self.state().nats_port}",
            nats_credentials=self.credentials_of(service),
            instance=instance,
        )


def _no_platform(root: Path) -> Problem:
    return Problem(
        code=ErrorCode.NOT_RUNNING,
        message="there is no platform in this folder",
        file=str(root),
        remedy="start one with `inferbus up`, or name its folder with --dir",
    )


def _broken(path: Path, fault: Mapping[str, Any]) -> Problem:
    return Problem(
        code=ErrorCode.BAD_SETTING,
        message=f"the platform's own record is broken: {fault['msg']}",
        file=str(path),
        field=".".join(map(str, fault["loc"])) or None,
        value=shorten(fault["input"]),
        remedy="end the platform with `inferbus down`, remove the file, start again",
    )
