"""Wires the console: facts folded into a picture, questions answered from it."""

from collections.abc import Sequence

from inferbus_console.decisions import DECISION_TYPES
from inferbus_console.handlers import ConsoleApi
from inferbus_console.picture import Picture
from inferbus_console.settings import ConsoleSettings
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.service import Runtime, run_service

FOLDED = (
    "spec.changed",
    "workload.observed",
    "metrics.sampled",
    "route.published",
    "route.acknowledged",
    "scaling.refused",
    "control.frozen",
    "control.thawed",
    *DECISION_TYPES,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.CONSOLE, ConsoleSettings, serve)


async def serve(runtime: Runtime[ConsoleSettings]) -> None:
    """Fold what stands on the bus, then answer."""
    picture = Picture()
    runtime.background(_follow_traffic(runtime.bus, picture), "traffic")
    await fold(runtime, FOLDED, picture.take)
    ConsoleApi(runtime.bus, picture).register(runtime)


async def _follow_traffic(bus: Bus, picture: Picture) -> None:
    """Traffic counts from now on: a window of seconds has no history."""
    async for event in bus.events(bus.follow("demand.observed", Start.new())):
        picture.take(event)
