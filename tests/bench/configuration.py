"""What a platform under measurement was started with: it stands beside every figure."""

from inferbus_autoscaler.settings import AutoscalerSettings
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.plan import (
    DEFAULT_STARTUP_SECONDS,
    SERVICES,
    SIMULATOR_PREFIX,
    PlatformOptions,
    instances_of,
)
from inferbus_contracts.services import Service
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from tests.bench.figure import Detail


def configuration(directory: PlatformDirectory, **load: Detail) -> dict[str, Detail]:
    """The platform as it was started, and what is asked of it."""
    state = directory.state()
    startup = state.environment.get(f"{SIMULATOR_PREFIX}STARTUP_SECONDS", DEFAULT_STARTUP_SECONDS)
    collector = MetricsCollectorSettings.model_fields["interval_seconds"].default
    repeat = AutoscalerSettings.model_fields["repeat_seconds"].default
    chosen = state.environment
    options = PlatformOptions(instances={Service(name): n for name, n in state.instances.items()})
    instances = (f"{one.value} {instances_of(one, options)}" for one in SERVICES)
    return {
        "instances": ", ".join(instances),
        "engines": state.engines,
        "startup_seconds": float(startup),
        "clock_rate": state.clock_rate,
        "sample_interval_seconds": float(
            chosen.get("INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS", collector)
        ),
        "decision_repeat_seconds": float(chosen.get("INFERBUS_AUTOSCALER_REPEAT_SECONDS", repeat)),
        **load,
    }
