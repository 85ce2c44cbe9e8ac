"""Wires the optimizer: facts beside the inbox, the core behind the decider shell."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_optimizer.fact_fold import FactFold
from inferbus_optimizer.handlers import OptimizerHandlers
from inferbus_optimizer.settings import OptimizerSettings
from inferbus_optimizer.state import SCHEMA
from inferbus_shared.bus.decider import Decider
from inferbus_shared.bus.folding import fold
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
    decider = Decider(runtime.bus, SCHEMA, handlers.decide, handlers.state_key)
    runtime.on_inbox(decider.handle)
