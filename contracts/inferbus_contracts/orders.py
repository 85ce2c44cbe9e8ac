"""Orders of people as they stand: what is frozen, and which decisions are approved.

A scope is a target, a policy or binding (all that it scales), `Namespace/_/<name>` or
`Platform/_/all`; a thaw ends the freeze of exactly its own scope. Pure: folded from control.*
events, time passed in.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed, Order
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey

PLATFORM = ObjectKey("Platform", NO_NAMESPACE, "all")
NAMESPACE_SCOPE = "Namespace"


def namespace_scope(namespace: str) -> ObjectKey:
    """The scope of everything in a namespace."""
    return ObjectKey(NAMESPACE_SCOPE, NO_NAMESPACE, namespace)


def scopes_of(target: ObjectKey, policies: Iterable[ObjectKey] = ()) -> tuple[ObjectKey, ...]:
    """The scopes that a target lies in, the widest first; `policies` are those that scale it."""
    whole = (target.owner,) if target.role else ()
    return (PLATFORM, namespace_scope(target.namespace), *policies, *whole, target)


@dataclass(frozen=True, slots=True)
class Freeze:
    """A freeze in force."""

    scope: ObjectKey
    order: ControlFrozen

    def __str__(self) -> str:
        """One sentence: what, until when, by whom and why."""
        until_ms = self.order.until_ms
        until = "" if until_ms is None else f" until {format_time(until_ms)}"
        return f"{self.scope} is frozen{until} by {self.order.who}: {self.order.why}"


class Orders:
    """All orders seen so far."""

    def __init__(self) -> None:
        self._frozen: dict[ObjectKey, tuple[int, ControlFrozen]] = {}
        self._thawed_ms: dict[ObjectKey, int] = {}
        self._approved: dict[ObjectKey, ControlApproved] = {}

    @property
    def any_freeze(self) -> bool:
        """Whether anything was ever frozen; False: `freeze` finds nothing, whatever the target."""
        return bool(self._frozen)

    def take(self, scope: ObjectKey, order: Order, time_ms: int) -> None:
        """Fold one order in; they may come in any order."""
        if isinstance(order, ControlFrozen):
            if time_ms >= self._frozen.get(scope, (0, order))[0]:
                self._frozen[scope] = (time_ms, order)
        elif isinstance(order, ControlThawed):
            self._thawed_ms[scope] = max(time_ms, self._thawed_ms.get(scope, 0))
        elif isinstance(order, ControlApproved):
            self._approved[scope] = order

    def freeze(
        self, target: ObjectKey, now_ms: int, policies: Iterable[ObjectKey] = ()
    ) -> Freeze | None:
        """The widest freeze that a target lies in; `policies` are those that scale it."""
        for scope in scopes_of(target, policies):
            since_ms, order = self._frozen.get(scope, (0, None))
            if order is None or self._thawed_ms.get(scope, -1) >= since_ms:
                continue
            if in_force(order, now_ms):
                return Freeze(scope, order)
        return None

    def approves(self, target: ObjectKey, decision_id: str, now_ms: int) -> bool:
        """Whether exactly this decision was approved, and still is."""
        order = self._approved.get(target)
        return order is not None and order.decision_id == decision_id and in_force(order, now_ms)


def in_force(order: Order, now_ms: int) -> bool:
    """Whether an order's time isn't over yet."""
    return order.until_ms is None or now_ms < order.until_ms
