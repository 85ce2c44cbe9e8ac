"""Says which policies can't be decided by, so that their owners learn it where they look.

Level-triggered: whatever changed, a policy is told as refused, or as usable again, only where that
differs from what the bus says already. Several instances say the same under the same id.
"""

import logging

from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.telemetry import DecisionMetrics
from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import ScalingRefused
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.worklist import Worklist

log = logging.getLogger("inferbus.autoscaler")

_KINDS = frozenset({AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING})


class Refusals:
    """Keeps `scaling.refused` in step with the facts."""

    def __init__(self, bus: Bus, facts: FactFold, metrics: DecisionMetrics) -> None:
        self._facts = facts
        self._metrics = metrics
        self._refused: set[ObjectKey] = set()
        self._observer = Observer(bus, ScalingRefused.event_type)
        self._due = Worklist[ObjectKey]("refusals")

    def take(self, event: Received[EventData]) -> None:
        """A fact came; one policy that goes, comes or changes may be another's turn."""
        if event.key.kind in _KINDS:
            self.look()

    def look(self) -> None:
        """Look at every policy, and at all that were ever refused."""
        for key in (*self._facts.policy_keys(), *self._observer.keys()):
            self._due.add(key)

    async def run(self) -> None:
        """Tell until cancelled."""
        await self._due.run(self._work)

    async def follow(self) -> None:
        """Follow what was told; must run beside `run`."""
        await self._observer.run()

    async def ready(self) -> None:
        """Wait until it is known what was told, and look at everything once."""
        await self._observer.ready()
        self.look()

    async def _work(self, key: ObjectKey) -> None:
        uid, problems = self._facts.refusal(key)
        self._refused = self._refused | {key} if problems else self._refused - {key}
        self._metrics.refused.set(len(self._refused))
        last = self._observer.last(key)
        told = last if isinstance(last, ScalingRefused) else ScalingRefused(uid="")
        if not problems and not told.problems:
            return
        fact = ScalingRefused(uid=uid or told.uid, problems=list(problems))
        if await self._observer.observe(key, fact.uid, fact) is not None:
            for problem in problems:
                log.error("a policy cannot be used", extra={"problem": str(problem)})
