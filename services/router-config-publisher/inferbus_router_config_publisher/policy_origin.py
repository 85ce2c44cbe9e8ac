"""Where a route comes from: who made it, how old it is, and whose model it serves.

A route that was expanded from a ModelBooster, Playground or inference Service tells its model's
owner in `/v1/models` (ruling "owner", llmaz spec 1.1). The expander writes owner and age onto the
route; for a route that has come another way they are read from what owns it.

Invariant: whatever was looked at, found or not, is told, so that a change of it is noticed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.annotations import CREATED_AT, OWNED_BY
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.inference import InferenceService, Playground
from inferbus_contracts.resources.kinds import KINDS, find_kind
from inferbus_contracts.resources.metadata import ObjectMeta, Resource
from inferbus_contracts.resources.open_model import OpenModel

ORIGIN_KINDS = frozenset(
    {kinds.MODEL_BOOSTER, kinds.PLAYGROUND, kinds.INFERENCE_SERVICE, kinds.OPEN_MODEL}
)
"""Kinds whose objects say something about the routes that were expanded from them."""

_GIVES_WAY = frozenset({kinds.PLAYGROUND, kinds.INFERENCE_SERVICE})

Lookup = Callable[[ObjectKey], Resource | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What is known about a route beside its spec."""

    created_at_ms: int
    """When the model was made, else the route; 0 where nobody says."""
    owned_by: str
    """Empty where nobody says."""
    gives_way: bool
    """Expanded from a Playground or Service: a user's own route for its model takes its place
    (ruling "routing" of llmaz).
    """
    consulted: frozenset[ObjectKey]
    """Objects that this was read from, those that don't exist included."""


def origin_of(metadata: ObjectMeta, namespace: str, lookup: Lookup) -> Origin:
    """The origin of a route, through its owners."""
    consulted: set[ObjectKey] = set()

    def find(key: ObjectKey) -> Resource | None:
        consulted.add(key)
        return lookup(key)

    created: str | None = None
    owned_by = ""
    owners = list(_owners(metadata, namespace))
    for key in owners:
        owner = find(key)
        if isinstance(owner, ModelBooster):
            owned_by = owner.spec.owner or ""
            break
        model_name = _main_model(owner)
        model = find(KINDS[kinds.OPEN_MODEL].key(model_name)) if model_name else None
        if isinstance(model, OpenModel):
            owned_by, created = model.spec.owned_by, model.spec.created_at
            break
    written = metadata.annotations if owners else {}  # nobody makes their own route older
    times = (written.get(CREATED_AT), created, metadata.creation_timestamp)
    return Origin(
        created_at_ms=next((ms for ms in map(_time_ms, times) if ms is not None), 0),
        owned_by=written.get(OWNED_BY) or owned_by,
        gives_way=any(key.kind in _GIVES_WAY for key in owners),
        consulted=frozenset(consulted),
    )


def _owners(metadata: ObjectMeta, namespace: str) -> Iterator[ObjectKey]:
    """Owners of kinds that know something; an owner is in the namespace of what it owns."""
    for reference in metadata.owner_references:
        kind = find_kind(reference.api_version, reference.kind)
        if kind is not None and kind.token in ORIGIN_KINDS:
            yield kind.key(reference.name, namespace)


def _main_model(owner: Resource | None) -> str | None:
    if isinstance(owner, Playground):
        return owner.main_model
    if isinstance(owner, InferenceService):
        return owner.spec.model_claims.main
    return None


def _time_ms(text: str | None) -> int | None:
    """None for a time that can't be read: it was checked when it came in."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
