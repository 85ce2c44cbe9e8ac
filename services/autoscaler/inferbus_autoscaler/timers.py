"""When a key wakes itself: what the shell is to do about its one timer."""

from inferbus_autoscaler.outcomes import Effect
from inferbus_autoscaler.record import CoreInput
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import ClearTimer, SetTimer, Woken
from inferbus_contracts.events.scaling import Limiter


def timer_effects(given: CoreInput, after: TargetState, binds: str) -> tuple[Effect, ...]:
    """The change from the timer that is set to the one of the state after.

    `binds` is the limiter that ends then, where no freeze does. A timer that just fired is set no
    more.
    """
    set_ms = given.state.timer_ms
    if isinstance(given.event, Woken) and given.event.due_ms == set_ms:
        set_ms = None
    if after.timer_ms == set_ms:
        return ()
    if after.timer_ms is None:
        return (ClearTimer(),)
    ends = Limiter.FREEZE if given.facts.frozen else binds
    return (SetTimer(after.timer_ms, f"{ends} ends"),)
