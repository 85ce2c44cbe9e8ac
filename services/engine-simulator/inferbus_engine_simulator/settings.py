"""The settings of the simulator: what hardware is simulated, and how fast time runs.

Invariant: what the engine's own command line says is never overridden here; `default_…` and
`model_billions` only add what the line can't say.
"""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from inferbus_engine_simulator.policy_engine_flags import EngineKind


class SimulatorSettings(BaseSettings):
    """Prefix `INFERBUS_ENGINE_SIMULATOR_`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_ENGINE_SIMULATOR_",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    accelerator: str = "a10"
    """A preset of `policy_accelerators`; `instant` takes no time."""
    startup_seconds: float | None = Field(default=None, ge=0)
    """Virtual seconds until the engine answers; None: as the preset and the model's size say."""
    speed: float | None = Field(default=None, gt=0, le=10_000)
    """Virtual seconds per real second of this engine; None: `INFERBUS_CLOCK_RATE`."""
    seed: int = Field(default=0, ge=-(2**31), lt=2**31)
    """Which texts are generated and which requests meet a fault."""
    model_billions: float | None = Field(default=None, gt=0)
    """Parameters of the model, billions; None: guessed from its names."""
    faults: str = ""
    """JSON of a fault or a list of faults that are set from the start."""
    engine: EngineKind | None = None
    """The engine of the container's image, for command lines that don't name one."""
    default_port: int | None = Field(default=None, ge=1, le=65535)
    """Where to listen when the command line doesn't say."""
    default_model: str = ""
    """The model's name when the command line has none."""
    bootstrap_timeout_seconds: float = Field(default=300.0, gt=0)
    """Virtual seconds that SGLang's prefill and decode wait for each other."""
    drain_seconds: float = Field(default=30.0, gt=0)
    """Real seconds that running requests get after SIGTERM."""


class PlatformSettings(BaseSettings):
    """What all parts of a platform share, prefix `INFERBUS_`."""

    model_config = SettingsConfigDict(
        env_prefix="INFERBUS_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    clock_rate: float = Field(default=1.0, gt=0, le=10_000)
    """Virtual seconds per real second."""
    pod_ip: str = ""
    """The pod's own address: stands for 0.0.0.0 and for localhost, because two simulated pods
    share the machine's interfaces, and real ones don't."""
