"""Who selects what by labels, kept up to date change by change.

Thousands of selectors over thousands of pods: a change of one side looks only at those of the other
that share a label with it, never at all of them.

Invariant: `members` of a selector are exactly the items of its namespace that have all its labels;
the order in which selectors and items came and went leaves no trace.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from inferbus_contracts.keys import ObjectKey

Labels = Mapping[str, str]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Item(NamedTuple):
    """What can be selected: a pod of a workload, or a template that pods are made from."""

    workload: ObjectKey
    name: str
    """The pod's name, or the template's role."""
    is_template: bool = False


class _Pair(NamedTuple):
    namespace: str
    label: str | None
    """None stands for what every item of the namespace has."""
    value: str


_NOBODY: frozenset[ObjectKey] = frozenset()


class Selection:
    """Selectors, items, and which of them belong together."""

    def __init__(self) -> None:
        self._selectors: dict[ObjectKey, Labels] = {}
        self._pivots: dict[ObjectKey, _Pair] = {}
        self._by_pivot: dict[_Pair, set[ObjectKey]] = {}
        self._members: dict[ObjectKey, set[Item]] = {}
        self._items: dict[Item, Labels] = {}
        self._items_with: dict[_Pair, set[Item]] = {}
        self._selected_by: dict[Item, set[ObjectKey]] = {}

    def members(self, selector: ObjectKey) -> list[Item]:
        """What a selector selects, sorted; nothing when it isn't known."""
        return sorted(self._members.get(selector, ()))

    def selectors_of(self, item: Item) -> frozenset[ObjectKey]:
        """Who selects an item."""
        return frozenset(self._selected_by.get(item, _NOBODY))

    def set_selector(self, selector: ObjectKey, labels: Labels | None) -> None:
        """Select by these labels from now on, in the selector's own namespace; None: not at all.

        No labels at all select everything there (routing spec 1.2).
        """
        if labels is not None and self._selectors.get(selector) == labels:
            return
        self._forget_selector(selector)
        if labels is None:
            return
        self._selectors[selector] = labels
        pairs = list(_pairs(selector.namespace, labels)) or [_anything(selector.namespace)]
        pivot = min(pairs, key=lambda pair: len(self._by_pivot.get(pair, ())))
        self._pivots[selector] = pivot
        self._by_pivot.setdefault(pivot, set()).add(selector)
        rarest = min((self._items_with.get(pair, set()) for pair in pairs), key=len)
        members = {item for item in rarest if _matches(labels, self._items[item])}
        self._members[selector] = members
        for item in members:
            self._selected_by.setdefault(item, set()).add(selector)

    def set_item(self, item: Item, labels: Labels | None) -> frozenset[ObjectKey]:
        """The item has these labels from now on (None: it is gone); returns who selects it now."""
        before = self._items.get(item)
        if labels is not None and before == labels:
            return self.selectors_of(item)
        self._forget_item(item)
        if labels is None:
            return _NOBODY
        self._items[item] = labels
        namespace = item.workload.namespace
        selectors: set[ObjectKey] = set()
        for pair in (*_pairs(namespace, labels), _anything(namespace)):
            self._items_with.setdefault(pair, set()).add(item)
            selectors.update(
                selector
                for selector in self._by_pivot.get(pair, ())
                if _matches(self._selectors[selector], labels)
            )
        for selector in selectors:
            self._members[selector].add(item)
        if selectors:
            self._selected_by[item] = selectors
        return frozenset(selectors)

    def _forget_selector(self, selector: ObjectKey) -> None:
        if self._selectors.pop(selector, None) is None:
            return
        _discard(self._by_pivot, self._pivots.pop(selector), selector)
        for item in self._members.pop(selector):
            _discard(self._selected_by, item, selector)

    def _forget_item(self, item: Item) -> None:
        labels = self._items.pop(item, None)
        if labels is None:
            return
        namespace = item.workload.namespace
        for pair in (*_pairs(namespace, labels), _anything(namespace)):
            _discard(self._items_with, pair, item)
        for selector in self._selected_by.pop(item, ()):
            self._members[selector].discard(item)


def _pairs(namespace: str, labels: Labels) -> Iterator[_Pair]:
    return (_Pair(namespace, label, value) for label, value in labels.items())


def _anything(namespace: str) -> _Pair:
    return _Pair(namespace, None, "")


def _matches(selector: Labels, labels: Labels) -> bool:
    return all(labels.get(label) == value for label, value in selector.items())


def _discard(index: dict[KeyT, set[ValueT]], key: KeyT, value: ValueT) -> None:
    values = index[key]
    values.discard(value)
    if not values:
        del index[key]
