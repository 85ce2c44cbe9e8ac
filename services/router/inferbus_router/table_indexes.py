"""By which names the rules of routes are found, kept up to date change by change.

A table of thousands of routes changes by one: only the names that this one lists are looked at, the
rest is copied as it is. Invariant: indexes are never changed once made, and are the same whatever
order their routes came in: the oldest first, then by namespace and name.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, Self, TypeVar


class NamedRoute(Protocol):
    """What of a route its place in the indexes depends on."""

    @property
    def name(self) -> str:
        """`namespace/name`."""
        ...

    @property
    def model_name(self) -> str:
        """Empty for a route that serves adapters alone."""
        ...

    @property
    def adapters(self) -> Sequence[str]:
        """LoRA names that it serves beside its model name."""
        ...

    @property
    def created_at_ms(self) -> int:
        """The older route is asked first."""
        ...


RouteT = TypeVar("RouteT", bound=NamedRoute)
CandidateT = TypeVar("CandidateT")

_Claims = dict[str, tuple[RouteT, ...]]


class TableIndexes(Generic[RouteT, CandidateT]):
    """What may serve a name, in the order it is tried."""

    def __init__(self, candidates_of: Callable[[RouteT], tuple[CandidateT, ...]]) -> None:
        """Of no routes; `candidates_of` tells what a route offers, in its order."""
        self._candidates_of = candidates_of
        self.by_model: dict[str, tuple[CandidateT, ...]] = {}
        self.by_adapter: dict[str, tuple[CandidateT, ...]] = {}
        self.names: dict[str, RouteT] = {}
        """Every name that clients may use, sorted, with the first route that lists it."""
        self._models: _Claims[RouteT] = {}
        self._adapters: _Claims[RouteT] = {}

    def after(self, gone: Iterable[RouteT], new: Iterable[RouteT]) -> Self:
        """The indexes once these routes went and those came."""
        left, come = set(gone), tuple(new)
        changed = (*left, *come)
        models = {route.model_name for route in changed if route.model_name}
        adapters = {name for route in changed for name in route.adapters}
        indexes = type(self)(self._candidates_of)
        indexes._models = _claims(self._models, models, left, come, _model_names)
        indexes._adapters = _claims(self._adapters, adapters, left, come, _adapter_names)
        indexes.by_model = self._candidates(self.by_model, indexes._models, models)
        indexes.by_adapter = self._candidates(self.by_adapter, indexes._adapters, adapters)
        indexes.names = self.names.copy()
        for name in models | adapters:
            indexes._list_name(name)
        if indexes.names.keys() != self.names.keys():
            indexes.names = dict(sorted(indexes.names.items()))
        return indexes

    def _candidates(
        self,
        earlier: dict[str, tuple[CandidateT, ...]],
        claims: _Claims[RouteT],
        names: Iterable[str],
    ) -> dict[str, tuple[CandidateT, ...]]:
        candidates = earlier.copy()
        for name in names:
            if name in claims:
                offers = map(self._candidates_of, claims[name])
                candidates[name] = tuple(one for offer in offers for one in offer)
            else:
                candidates.pop(name, None)
        return candidates

    def _list_name(self, name: str) -> None:
        claims = (*self._models.get(name, ()), *self._adapters.get(name, ()))
        if claims:
            self.names[name] = min(claims, key=_rank)
        else:
            self.names.pop(name, None)


def _model_names(route: NamedRoute) -> Iterable[str]:
    return (route.model_name,)


def _adapter_names(route: NamedRoute) -> Iterable[str]:
    return route.adapters


def _rank(route: NamedRoute) -> tuple[int, str]:
    return (route.created_at_ms, route.name)


def _claims(
    earlier: _Claims[RouteT],
    names: Iterable[str],
    gone: set[RouteT],
    new: Iterable[RouteT],
    names_of: Callable[[RouteT], Iterable[str]],
) -> _Claims[RouteT]:
    """Who lists each name, with `names` looked at anew."""
    coming: dict[str, list[RouteT]] = {}
    for route in new:
        for name in dict.fromkeys(names_of(route)):
            coming.setdefault(name, []).append(route)
    claims = earlier.copy()
    for name in names:
        staying = [route for route in earlier.get(name, ()) if route not in gone]
        listing = sorted([*staying, *coming.get(name, ())], key=_rank)
        if listing:
            claims[name] = tuple(listing)
        else:
            claims.pop(name, None)
    return claims
