"""Keeps the children of short objects as their expansion says.

Level-triggered: whatever changes, the parent is expanded anew and what is stored made equal to
that. A child that somebody edits or deletes comes back; one that is no longer rendered goes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from inferbus_contracts.api.objects import AppliedDocument, Preconditions
from inferbus_contracts.conditions import condition
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    INFERENCE_SERVICE,
    MODEL_BOOSTER,
    PLAYGROUND,
    key_of,
)
from inferbus_shared.bus.membership import Membership
from inferbus_shared.objects.picture import StoredObject
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.expansion import Expansion, ExpansionSettings, expand
from inferbus_spec_watcher.expansion.conditions import EXPANDED
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import Ownership, owner_reference
from inferbus_spec_watcher.policy_objects import EXPANDER, owners_of
from inferbus_spec_watcher.status.view import Verdict

SHORT_KINDS = frozenset({MODEL_BOOSTER, PLAYGROUND, INFERENCE_SERVICE})
"""Kinds that are expanded."""


class Expander:
    """Expands on the one instance that is active."""

    def __init__(
        self,
        store: ObjectStore,
        applier: Applier,
        ownership: Ownership,
        membership: Membership,
        settings: ExpansionSettings,
    ) -> None:
        self._store = store
        self._applier = applier
        self._ownership = ownership
        self._membership = membership
        self._settings = settings
        self._dirty = Worklist[ObjectKey]("expansion")
        self._waiting: dict[ObjectKey, frozenset[ObjectKey]] = {}
        self._verdicts: dict[ObjectKey, Verdict] = {}
        self._listeners: list[Callable[[ObjectKey], None]] = []
        store.on_change(self._changed)
        ownership.on_child_change(self._look_at)
        membership.on_change(self._everything)

    def verdict(self, key: ObjectKey) -> Verdict | None:
        """What the last expansion of an object says of it; None before there was one."""
        return self._verdicts.get(key)

    def on_verdict(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with the key of every object whose expansion says something else now."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Expand until cancelled."""
        await self._store.ready()
        self._everything()
        await self._dirty.run(self._expand)

    def _everything(self) -> None:
        for key, _ in self._store.items():
            self._look_at(key)

    def _look_at(self, key: ObjectKey) -> None:
        if key.kind in SHORT_KINDS:
            self._dirty.add(key)

    def _changed(self, key: ObjectKey) -> None:
        self._look_at(key)
        for parent, awaited in self._waiting.items():
            if key in awaited:
                self._dirty.add(parent)

    async def _expand(self, key: ObjectKey) -> None:
        if not self._membership.is_active:
            return
        parent = self._store.get(key)
        if parent is None:
            self._waiting.pop(key, None)
            self._verdicts.pop(key, None)
            return
        expansion = expand(parent.object, self._lookup, self._settings)
        assert expansion is not None, "every short kind is expanded"
        self._waiting[key] = expansion.waits_for
        try:
            await self._carry_out(parent, expansion)
        except ProblemsError as error:
            conditions = (_not_applied(error), *_without_success(expansion))
            self._say(key, Verdict(parent.generation, conditions))
            raise
        self._say(key, Verdict(parent.generation, expansion.conditions))

    async def _carry_out(self, parent: StoredObject, expansion: Expansion) -> None:
        documents = [
            AppliedDocument(object=owned(child, parent.object)) for child in expansion.children
        ]
        if documents:
            await self._applier.apply(documents, EXPANDER, force=True)
        if not expansion.blocked:
            await self._delete_others(parent, {key_of(one.object) for one in documents})

    async def _delete_others(self, parent: StoredObject, rendered: set[ObjectKey]) -> None:
        for key in self._ownership.children(parent.uid):
            child = self._store.get(key)
            if child is not None and key not in rendered and EXPANDER in owners_of(child.object):
                await self._applier.delete(key, Preconditions(uid=child.uid))

    def _lookup(self, key: ObjectKey) -> Mapping[str, Any] | None:
        stored = self._store.get(key)
        return stored.object if stored else None

    def _say(self, key: ObjectKey, verdict: Verdict) -> None:
        if self._verdicts.get(key) != verdict:
            self._verdicts[key] = verdict
            for listener in self._listeners:
                listener(key)


def owned(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """A rendered child with the reference to its parent."""
    metadata = child["metadata"] | {"ownerReferences": [owner_reference(parent)]}
    return {**child, "metadata": metadata}


def _not_applied(error: ProblemsError) -> ConditionFact:
    """The children are known, but can't be stored."""
    return condition(EXPANDED, False, "ApplyFailed", str(error))


def _without_success(expansion: Expansion) -> tuple[ConditionFact, ...]:
    return tuple(one for one in expansion.conditions if one.type != EXPANDED)
