"""Keeps the children of short objects as their expansion says.

Level-triggered: whatever changes, the parent is expanded anew and what is stored made equal to
that. A child that somebody edits or deletes comes back; one that is no longer rendered goes. What
to store and what to delete is decided on the objects as they stand at that moment, so that an
object of somebody else that came in between is left alone. The children of a parent that was
refused stay as they are; those of one that is going go with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from inferbus_contracts.api.objects import AppliedDocument
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
from inferbus_shared.objects.picture import StoredObject, controller_uid, is_going
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.expansion import Expansion, expand
from inferbus_spec_watcher.expansion.conditions import EXPANDED
from inferbus_spec_watcher.ownership import Ownership, owner_reference
from inferbus_spec_watcher.policy_objects import EXPANDER, owners_of
from inferbus_spec_watcher.ports import Hand, Objects
from inferbus_spec_watcher.status.view import Verdict
from inferbus_spec_watcher.surroundings import Surroundings

SHORT_KINDS = frozenset({MODEL_BOOSTER, PLAYGROUND, INFERENCE_SERVICE})
"""Kinds that are expanded."""


@dataclass(frozen=True, slots=True)
class _Rendered:
    """The last expansion of an object, and which state of the object it is of."""

    parent: StoredObject
    expansion: Expansion

    def verdict(self, conditions: tuple[ConditionFact, ...]) -> Verdict:
        return Verdict(self.parent.uid, self.parent.generation, conditions)


class Expander:
    """Expands on the one instance that is active."""

    def __init__(
        self,
        store: Objects,
        hand: Hand,
        ownership: Ownership,
        membership: Membership,
        surroundings: Surroundings,
    ) -> None:
        self._store = store
        self._hand = hand
        self._ownership = ownership
        self._membership = membership
        self._surroundings = surroundings
        self._dirty = Worklist[ObjectKey]("expansion")
        self._rendered: dict[ObjectKey, _Rendered] = {}
        self._verdicts: dict[ObjectKey, Verdict] = {}
        self._listeners: list[Callable[[ObjectKey], None]] = []
        store.on_change(self._changed)
        membership.on_change(self._everything)
        surroundings.on_change(self._everything)

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
        """Children are among what an expansion looks up, so theirs are changes like any other."""
        self._look_at(key)
        for parent, rendered in self._rendered.items():
            if key in rendered.expansion.waits_for:
                self._dirty.add(parent)

    async def _expand(self, key: ObjectKey) -> None:
        if not self._membership.is_active:
            return
        self._rendered.pop(key, None)
        try:
            await self._hand.apply_rendered(partial(self._render, key), EXPANDER, force=True)
            await self._delete_others(key)
        except ProblemsError as error:
            self._say(key, error)
            raise
        self._say(key)

    def _render(self, key: ObjectKey) -> list[AppliedDocument]:
        parent = self._store.get(key)
        if parent is None or is_going(parent.object) or self._store.refusal(key):
            return []
        expansion = expand(parent.object, self._lookup, self._surroundings.settings)
        assert expansion is not None, "every short kind is expanded"
        self._rendered[key] = _Rendered(parent, expansion)
        return [AppliedDocument(object=owned(one, parent.object)) for one in expansion.children]

    async def _delete_others(self, key: ObjectKey) -> None:
        rendered = self._rendered.get(key)
        if rendered is None or rendered.expansion.blocked:
            return
        wanted = {key_of(child) for child in rendered.expansion.children}
        parent = rendered.parent.uid
        for child in self._ownership.children(parent):
            if child not in wanted:
                await self._hand.delete_if(child, partial(_is_rendered_for, parent))

    def _lookup(self, key: ObjectKey) -> Mapping[str, Any] | None:
        stored = self._store.get(key)
        return stored.object if stored else None

    def _say(self, key: ObjectKey, error: ProblemsError | None = None) -> None:
        rendered = self._rendered.get(key)
        if rendered is None:
            self._verdicts.pop(key, None)
            return
        verdict = rendered.verdict(_conditions(rendered.expansion, error))
        if self._verdicts.get(key) != verdict:
            self._verdicts[key] = verdict
            for listener in self._listeners:
                listener(key)


def owned(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """A rendered child with the reference to its parent."""
    metadata = child["metadata"] | {"ownerReferences": [owner_reference(parent)]}
    return {**child, "metadata": metadata}


def _is_rendered_for(uid: str, child: StoredObject) -> bool:
    return controller_uid(child.object) == uid and EXPANDER in owners_of(child.object)


def _conditions(expansion: Expansion, error: ProblemsError | None) -> tuple[ConditionFact, ...]:
    if error is None:
        return expansion.conditions
    doubts = (one for one in expansion.conditions if one.type != EXPANDED)
    return (condition(EXPANDED, False, "ApplyFailed", str(error)), *doubts)
