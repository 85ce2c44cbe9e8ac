"""Wires the optimizer: facts beside the inbox, the core behind the decider shell."""

from collections.abc import Sequence

from inferbus_contracts.base import EventData
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_optimizer.fact_fold import FactFold
from inferbus_optimizer.handlers import OptimizerHandlers
from inferbus_optimizer.settings import OptimizerSettings
from inferbus_optimizer.state import SCHEMA
from inferbus_optimizer.telemetry import AllocationMetrics
from inferbus_shared.bus.decider import Decider, Verdict
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.service import Runtime, run_service

FOLDED = ("spec.changed", "control.frozen", "control.thawed")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.OPTIMIZER, OptimizerSettings, serve)


async def serve(runtime: Runtime[OptimizerSettings]) -> None:
    """Fold the facts that stand on the bus, then decide."""
    facts = FactFold(runtime.settings.decider)
    await fold(runtime, FOLDED, lambda event: facts.take(event.key, event.data, event.time_ms))
    handlers = OptimizerHandlers(facts)
    metrics = AllocationMetrics(runtime.registry)

    def decide(
        key: ObjectKey, event: Received[EventData], before: StateStored | None
    ) -> Verdict | None:
        with metrics.solving():
            return handlers.decide(key, event, before)

    decider = Decider(
        runtime.bus, SCHEMA, decide, handlers.state_key, runtime.registry, metrics.committed
    )
    runtime.on_inbox(decider.handle)
