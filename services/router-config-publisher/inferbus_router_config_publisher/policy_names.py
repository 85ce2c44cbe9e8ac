"""Which routes answer for which model names, and who comes first where several do.

Routers offer a request to the routes that have its model as `modelName`, the oldest first; only
where there is none, to those that list it as an adapter (routing spec 2.3).

Invariant: the order told here is the order routers go by: age, then `namespace/name`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from inferbus_contracts.keys import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A route, as far as names go."""

    key: ObjectKey
    model_name: str
    """Empty for a route that serves adapters alone."""
    adapters: tuple[str, ...]
    created_at_ms: int
    gives_way: bool
    """To a user's own route of the namespace for the same model (ruling "routing" of llmaz)."""

    @property
    def rank(self) -> tuple[int, str]:
        """The smaller is asked first."""
        return (self.created_at_ms, f"{self.key.namespace}/{self.key.name}")


class Names:
    """The claims of all routes, by name."""

    def __init__(self) -> None:
        self._claims: dict[ObjectKey, Claim] = {}
        self._by_model: dict[str, dict[ObjectKey, Claim]] = {}
        self._by_adapter: dict[str, dict[ObjectKey, Claim]] = {}

    def set(self, key: ObjectKey, claim: Claim | None) -> frozenset[ObjectKey]:
        """A route claims this from now on (None: nothing); returns the routes it concerns.

        Those are the others that share a name with the old or the new claim, or with a route that
        may take or give up its place by it.
        """
        before = self._claims.get(key)
        if before == claim:
            return frozenset()
        self._claims.pop(key, None)
        concerned = {*self._sharing(before), *self._sharing(claim)} - {key}
        for other in tuple(concerned):
            if self._claims[other].gives_way:
                concerned.update(self._sharing(self._claims[other]))
        for index, name in self._places(before):
            del index[name][key]
            if not index[name]:
                del index[name]
        if claim is not None:
            self._claims[key] = claim
            for index, name in self._places(claim):
                index.setdefault(name, {})[key] = claim
        return frozenset(concerned - {key})

    def replaced_by(self, key: ObjectKey) -> ObjectKey | None:
        """The user's own route that takes the place of an expanded one; None where there is none.

        Only inside one namespace: nobody takes over the model of another.
        """
        claim = self._claims[key]
        if not claim.gives_way or not claim.model_name:
            return None
        own = [
            other
            for other in self._by_model[claim.model_name].values()
            if not other.gives_way and other.key.namespace == key.namespace
        ]
        return min(own, key=lambda other: other.rank).key if own else None

    def conflicts(self, key: ObjectKey) -> list[str]:
        """What is to be said about names that other routes have too, a sentence each."""
        claim = self._claims[key]
        told: list[str] = []
        if claim.model_name:
            same = self._by_model[claim.model_name].values()
            told += self._order(claim, f"model name {claim.model_name!r}", same)
        for adapter in claim.adapters:
            hiding = self._active(self._by_model.get(adapter, {}).values())
            if hiding:
                told.append(
                    f"adapter {adapter!r} is the model name of {_listed(hiding)}, "
                    "which gets its requests instead"
                )
            else:
                same = self._by_adapter[adapter].values()
                told += self._order(claim, f"adapter {adapter!r}", same)
        return told

    def _order(self, claim: Claim, name: str, claims: Iterable[Claim]) -> Iterator[str]:
        others = [other for other in self._active(claims) if other.key != claim.key]
        before = [other for other in others if other.rank < claim.rank]
        after = [other for other in others if other.rank > claim.rank]
        places = [f"before this one {_listed(before)}"] if before else []
        places += [f"after it {_listed(after)}"] if after else []
        if places:
            yield f"{name} is shared; its requests are offered {', '.join(places)}"

    def _active(self, claims: Iterable[Claim]) -> list[Claim]:
        return sorted(
            (claim for claim in claims if not self.replaced_by(claim.key)),
            key=lambda claim: claim.rank,
        )

    def _sharing(self, claim: Claim | None) -> Iterator[ObjectKey]:
        if claim is None:
            return
        for name in _names(claim):
            yield from self._by_model.get(name, ())
            yield from self._by_adapter.get(name, ())

    def _places(
        self, claim: Claim | None
    ) -> Iterator[tuple[dict[str, dict[ObjectKey, Claim]], str]]:
        if claim is None:
            return
        if claim.model_name:
            yield self._by_model, claim.model_name
        for adapter in claim.adapters:
            yield self._by_adapter, adapter


def _names(claim: Claim) -> Iterator[str]:
    if claim.model_name:
        yield claim.model_name
    yield from claim.adapters


def _listed(claims: Sequence[Claim], most: int = 3) -> str:
    names = [f"ModelRoute {claim.key.namespace}/{claim.key.name}" for claim in claims[:most]]
    more = len(claims) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
