"""Writes the status of objects, whenever what it is computed from changes.

Invariant: a status is computed of the object as it stands when it is written, and an object that
says the same already is not written.
"""

from functools import partial
from typing import Any

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.settlement import Settled
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import Clock
from inferbus_shared.objects.picture import StoredObject
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.expander import Expander
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.policies import POLICY_KINDS, Policies
from inferbus_spec_watcher.status.decisions import DECISION_FACTS, Decisions
from inferbus_spec_watcher.status.render import STATUS_KINDS, render
from inferbus_spec_watcher.status.view import View

FACTS = (RoutesResolved.event_type, MetricsAssessed.event_type, *DECISION_FACTS)
"""What others say that a status is computed from."""


class StatusWriter:
    """Writes on the one instance that is active."""

    def __init__(
        self,
        store: ObjectStore,
        applier: Applier,
        ownership: Ownership,
        policies: Policies,
        expander: Expander,
        membership: Membership,
        clock: Clock,
    ) -> None:
        self._store = store
        self._applier = applier
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
            return
        if isinstance(event.data, MetricsAssessed):
            self._assessed[event.key] = event.data
            self._look_at(event.key)
            for intent in self._policies.settled.intents:
                if intent.owner.key == event.key:
                    self._look_at(intent.policy.key)
            return
        for target in self._decisions.take(event.key, event.data, event.time_ms):
            self._look_at_scalers(target.owner)

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
        for kind in POLICY_KINDS:
            for other, _ in self._store.items(kind):
                self._look_at(other)

    def _look_at(self, key: ObjectKey) -> None:
        if self._started and key.kind in STATUS_KINDS:
            self._dirty.add(key)

    def _look_at_scalers(self, target: ObjectKey) -> None:
        for key, intent in self._policies.settled.owners.items():
            if key.owner == target:
                self._look_at(intent.owner.key)

    async def _write(self, key: ObjectKey) -> None:
        if self._membership.is_active:
            await self._applier.update_status(key, partial(self._render, key))

    def _render(self, key: ObjectKey, stored: StoredObject) -> dict[str, Any] | None:
        return render(key, stored, self._view(), self._clock.now_ms())

    def _view(self) -> View:
        return View(
            get=self._store.get,
            children=self._ownership.children,
            verdict=self._expander.verdict,
            resolved=self._resolved.get,
            wanted=self._decisions.wanted,
            scaled=self._decisions.scaled,
            assessed=self._assessed.get,
            settled=self._policies.settled,
        )
