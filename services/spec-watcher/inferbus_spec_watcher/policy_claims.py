"""Whether an object holds what a manifest asks for, and its applier owns just that.

Server-side apply keeps the fields of each applier in `managedFields` (`fieldsV1`: `f:` is a field,
`k:` an item by its keys, `v:` an item by its value). What holds already needs no request, so that a
quiet cluster sees none. Pure. Invariant: applying a manifest that `is_applied` changes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inferbus_contracts.canonical import canonical_json
from inferbus_spec_watcher.policy_fields import OWNED_METADATA

Claims = Mapping[str, Any]
"""A node of `fieldsV1`; empty where everything below is owned."""

_NOT_CLAIMED = frozenset({"apiVersion", "kind", "metadata", "status"})


def claimable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a manifest that its applier comes to own."""
    metadata = manifest.get("metadata", {})
    owned = {name: metadata[name] for name in OWNED_METADATA if metadata.get(name)}
    body = {name: value for name, value in manifest.items() if name not in _NOT_CLAIMED}
    return {**body, **({"metadata": owned} if owned else {})}


def is_applied(manifest: Mapping[str, Any], found: Mapping[str, Any], claims: Claims) -> bool:
    """Whether the stored object says all that the manifest does, and its applier claims just that.

    What is owned as a whole has to be the same as a whole; elsewhere others may have set more.
    """
    wanted = claimable(manifest)
    return _agrees(found, wanted, claims) and not _claims_more(claims, wanted)


def claims_field(claims: Claims, *names: str) -> bool:
    """Whether the field at this path of names is claimed."""
    for name in names:
        if f"f:{name}" not in claims:
            return False
        claims = claims[f"f:{name}"]
    return True


def _agrees(found: Any, wanted: Any, claims: Claims) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _field_agrees(found.get(name), value, claims.get(f"f:{name}"))
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and all(_item_agrees(found, one, claims) for one in wanted)
    return _is_same(found, wanted)


def _field_agrees(found: Any, wanted: Any, claims: Claims | None) -> bool:
    if _is_empty(wanted):
        return found is None or _is_empty(found) or isinstance(wanted, Mapping)
    if claims is None:
        return False
    return _agrees(found, wanted, claims) if claims else _is_same(found, wanted)


def _item_agrees(found: list[Any], wanted: Any, claims: Claims) -> bool:
    return any(
        _is_item(name, wanted)
        and _is_item(name, one)
        and (_agrees(one, wanted, below) if below else _is_same(one, wanted))
        for name, below in claims.items()
        for one in found
    )


def _is_same(one: Any, other: Any) -> bool:
    """Whether both say the same; what is empty says nothing."""
    return canonical_json(_told(one)) == canonical_json(_told(other))


def _told(value: Any) -> Any:
    if isinstance(value, Mapping):
        told = {name: _told(inner) for name, inner in value.items()}
        return {name: inner for name, inner in told.items() if not _is_empty(inner)}
    return [_told(one) for one in value] if isinstance(value, list) else value


def _claims_more(claims: Claims, wanted: Any) -> bool:
    return any(_is_given_up(name, below, wanted) for name, below in claims.items() if name != ".")


def _is_given_up(name: str, below: Claims, wanted: Any) -> bool:
    """Whether something of a claim stands in the manifest no more."""
    if name.startswith("f:"):
        field = name[2:]
        if not isinstance(wanted, Mapping) or field not in wanted:
            return True
        return _claims_more(below, wanted[field])
    items = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else ()
    return not any(_is_item(name, one) and not _claims_more(below, one) for one in items)


def _is_item(name: str, item: Any) -> bool:
    """Whether a claim on an item of a list is one on this; a key that isn't given is defaulted."""
    sign, _, text = name.partition(":")
    if sign == "k":
        keys = json.loads(text)
        return isinstance(item, Mapping) and all(item.get(k, v) == v for k, v in keys.items())
    return sign == "v" and bool(json.loads(text) == item)


def _is_empty(value: Any) -> bool:
    return value is None or value in ({}, [])
