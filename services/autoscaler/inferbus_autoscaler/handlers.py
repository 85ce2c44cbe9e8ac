"""From an event of the inbox to the core and back: what the decider shell calls."""

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Event, demanded, held, sampled
from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.base import EventData
from inferbus_contracts.deciding import applied, woken
from inferbus_contracts.events.demand import DemandPending, RouterDemand
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import ScalingApplied
from inferbus_contracts.events.scaling import Woken as WokenData
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.decider import Verdict, origin_of
from inferbus_shared.bus.messages import Received


class AutoscalerHandlers:
    """The core with the facts it looks at."""

    def __init__(self, facts: FactFold) -> None:
        self._facts = facts

    def state_key(self, event: Received[EventData]) -> ObjectKey | None:
        """The key of the state that an event concerns."""
        if isinstance(event.data, WokenData):
            return event.key
        return self._facts.state_key(event.key)

    def decide(
        self, key: ObjectKey, event: Received[EventData], before: StateStored | None
    ) -> Verdict | None:
        """What follows from one event; None where nothing does."""
        state = TargetState.from_dict(before.state) if before else TargetState()
        decision_id = before.decision_id if before else ""
        decision_ids = before.decision_ids if before else None
        facts = self._facts.facts(key, decision_id, event.time_ms, decision_ids)
        after, effects = decide(state, read_event(event), facts, event.time_ms)
        if after == state and not effects:
            return None
        return Verdict(after.to_dict(), effects)


def read_event(event: Received[EventData]) -> Event:
    """An event as the core hears it."""
    origin = origin_of(event)
    if isinstance(event.data, MetricsSampled):
        return sampled(event.data, origin)
    if isinstance(event.data, ScalingApplied):
        return applied(str(event.key), event.data, origin)
    if isinstance(event.data, WokenData):
        return woken(event.data, origin)
    if isinstance(event.data, DemandPending):
        return held(event.data, event.time_ms, origin)
    assert isinstance(event.data, RouterDemand), "the inbox has nothing else"
    return demanded(event.data, event.time_ms, origin)
