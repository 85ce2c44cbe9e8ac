"""Writes the status of objects, whenever what it is computed from changes."""

from inferbus_contracts.api.objects import Preconditions
from inferbus_contracts.base import EventData
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import Clock
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.expander import Expander
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.policies import POLICY_KINDS, Policies
from inferbus_spec_watcher.status.render import STATUS_KINDS, render
from inferbus_spec_watcher.status.view import View, Wanted

FACTS = (
    RoutesResolved.event_type,
    ScalingDecided.event_type,
    ScalingAllocated.event_type,
    ScalingApplied.event_type,
)
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
        self._wanted: dict[ObjectKey, Wanted] = {}
        self._scaled_at_ms: dict[ObjectKey, int] = {}
        store.on_change(self._changed)
        ownership.on_child_change(self._look_at)
        expander.on_verdict(self._look_at)
        membership.on_change(self._everything)

    def take(self, event: Received[EventData]) -> None:
        """Fold one of `FACTS` in."""
        data = event.data
        if isinstance(data, RoutesResolved):
            self._resolved[event.key] = data
            self._look_at(event.key)
        elif isinstance(data, ScalingDecided):
            self._wanted[event.key] = Wanted(data.desired, data.mode)
            self._look_at_scalers(event.key.owner)
        elif isinstance(data, ScalingAllocated):
            for share in data.allocations:
                self._wanted[ObjectKey.parse(share.target)] = Wanted(share.desired, None)
            self._look_at(event.key)
        elif isinstance(data, ScalingApplied) and data.outcome is ApplyOutcome.APPLIED:
            self._scaled_at_ms[event.key] = event.time_ms
            self._look_at_scalers(event.key.owner)

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
        if not self._started:
            return
        if key.kind in POLICY_KINDS:
            for kind in POLICY_KINDS:
                for other, _ in self._store.items(kind):
                    self._look_at(other)
        else:
            self._look_at_scalers(key)

    def _look_at(self, key: ObjectKey) -> None:
        if self._started and key.kind in STATUS_KINDS:
            self._dirty.add(key)

    def _look_at_scalers(self, target: ObjectKey) -> None:
        for key, intent in self._policies.settled.owners.items():
            if key.owner == target:
                self._look_at(intent.owner.key)

    async def _write(self, key: ObjectKey) -> None:
        stored = self._store.get(key)
        if stored is None or not self._membership.is_active:
            return
        status = render(key, stored, self._view(), self._clock.now_ms())
        if status is not None:
            await self._applier.set_status(key, status, Preconditions(uid=stored.uid))

    def _view(self) -> View:
        return View(
            get=self._store.get,
            children=self._ownership.children,
            verdict=self._expander.verdict,
            resolved=self._resolved.get,
            wanted=self._wanted.get,
            scaled_at_ms=self._scaled_at_ms.get,
            settled=self._policies.settled,
        )
