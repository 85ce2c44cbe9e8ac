"""Writes the status of objects, whenever what it is computed from changes.

Invariant: a status is computed of the object as it stands when it is written, and an object that
says the same already is not written.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from inferbus_contracts.base import EventData
from inferbus_contracts.events.control import ControlFrozen, ControlThawed, Order
from inferbus_contracts.events.metrics import MetricsAssessed, MetricsSampled
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.scaling.settlement import Settled
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import Clock
from inferbus_shared.objects.picture import StoredObject
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.expander import Expander
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.policies import POLICY_KINDS, Policies
from inferbus_spec_watcher.ports import Hand, Objects
from inferbus_spec_watcher.status.decisions import DECISION_FACTS, Decisions
from inferbus_spec_watcher.status.render import STATUS_KINDS, render
from inferbus_spec_watcher.status.samples import Samples
from inferbus_spec_watcher.status.scaling_conditions import next_look_ms
from inferbus_spec_watcher.status.view import View

FACTS = (
    RoutesResolved.event_type,
    *DECISION_FACTS,
    MetricsSampled.event_type,
    MetricsAssessed.event_type,
    ControlFrozen.event_type,
    ControlThawed.event_type,
)
"""What others say that a status is computed from."""


class StatusWriter:
    """Writes on the one instance that is active."""

    def __init__(
        self,
        store: Objects,
        hand: Hand,
        ownership: Ownership,
        policies: Policies,
        expander: Expander,
        membership: Membership,
        clock: Clock,
    ) -> None:
        self._store = store
        self._hand = hand
        self._ownership = ownership
        self._policies = policies
        self._expander = expander
        self._membership = membership
        self._clock = clock
        self._dirty = Worklist[ObjectKey]("status")
        self._started = False
        self._resolved: dict[ObjectKey, RoutesResolved] = {}
        self._assessed: dict[ObjectKey, MetricsAssessed] = {}
        self._decisions = Decisions()
        self._samples = Samples()
        self._orders = Orders()
        self._settled: Settled | None = None
        store.on_change(self._changed)
        ownership.on_child_change(self._look_at)
        expander.on_verdict(self._look_at)
        membership.on_change(self._everything)

    def take(self, event: Received[EventData]) -> None:
        """Fold one of `FACTS` in."""
        if isinstance(event.data, RoutesResolved):
            self._resolved[event.key] = event.data
            self._look_at(event.key)
        elif isinstance(event.data, MetricsAssessed):
            self._assessed[event.key] = event.data
            self._look_at_owner(event.key)
        elif isinstance(event.data, Order):
            self._orders.take(event.key, event.data, event.time_ms)
            self._look_at_policies()
        elif isinstance(event.data, MetricsSampled):
            self._look_at_all_scalers(self._samples.take(event.data))
        else:
            decisions = self._decisions
            self._look_at_all_scalers(
                decisions.take(event.key, event.data, event.time_ms, event.id)
            )

    async def run(self) -> None:
        """Write until cancelled."""
        await self._store.ready()
        self._started = True
        self._everything()
        await self._dirty.run(self._write)

    def _everything(self) -> None:
        for key, _ in self._store.items():
            self._look_at(key)

    def _changed(self, key: ObjectKey) -> None:
        self._look_at(key)
        if self._started:
            self._look_at_scalers(key)
            if key.kind in POLICY_KINDS:
                self._resettle()

    def _resettle(self) -> None:
        """A policy that comes or goes may win or lose its targets against any other."""
        settled = self._policies.settled
        if settled is self._settled:
            return
        self._settled = settled
        self._look_at_policies()

    def _look_at_policies(self) -> None:
        for kind in POLICY_KINDS:
            for key, _ in self._store.items(kind):
                self._look_at(key)

    def _look_at(self, key: ObjectKey) -> None:
        if self._started and key.kind in STATUS_KINDS:
            self._dirty.add(key)

    def _look_at_scalers(self, target: ObjectKey) -> None:
        for key, intent in self._policies.settled.owners.items():
            if key.owner == target:
                self._look_at(intent.owner.key)

    def _look_at_owner(self, owner: ObjectKey) -> None:
        """Look at a policy or binding, and at the policy that it applies."""
        self._look_at(owner)
        for intent in self._policies.settled.intents:
            if intent.owner.key == owner:
                self._look_at(intent.policy.key)

    def _look_at_all_scalers(self, targets: Iterable[ObjectKey]) -> None:
        for target in targets:
            self._look_at(target)
            self._look_at_scalers(target.owner)

    async def _write(self, key: ObjectKey) -> float | None:
        """Write one status; after how many real seconds it changes by itself."""
        if not self._membership.is_active:
            return None
        await self._hand.update_status(key, partial(self._render, key))
        if key.kind not in POLICY_KINDS:
            return None
        intents = [one for one in self._policies.settled.intents if one.owner.key == key]
        view = self._view()
        due_ms = next_look_ms(intents, view)
        return None if due_ms is None else (due_ms - view.now_ms) / 1000 / self._clock.anchor.rate

    def _render(self, key: ObjectKey, stored: StoredObject) -> dict[str, Any] | None:
        view = self._view()
        return render(key, stored, view, view.now_ms)

    def _view(self) -> View:
        now_ms, settled = self._clock.now_ms(), self._policies.settled
        return View(
            get=self._store.get,
            children=self._ownership.children,
            verdict=self._expander.verdict,
            resolved=self._resolved.get,
            wanted=self._decisions.wanted,
            scaled=self._decisions.scaled,
            answer=self._decisions.answer,
            demand=self._decisions.demand,
            measured=self._samples.metrics,
            sampled_ms=self._samples.taken_ms,
            assessed=self._assessed.get,
            refused=self._decisions.refused,
            freeze=lambda key: self._orders.freeze(key, now_ms, settled.policies_of(key)),
            settled=settled,
            now_ms=now_ms,
            refusal=self._store.refusal,
        )
