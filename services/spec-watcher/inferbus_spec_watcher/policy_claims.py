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
    """Whether the stored object says all that the manifest does, and its applier claims no more."""
    wanted = claimable(manifest)
    return (
        _holds(found, wanted) and _claims_all(claims, wanted) and not _claims_more(claims, wanted)
    )


def claims_field(claims: Claims, *names: str) -> bool:
    """Whether the field at this path of names is claimed."""
    for name in names:
        if f"f:{name}" not in claims:
            return False
        claims = claims[f"f:{name}"]
    return True


def _holds(found: Any, wanted: Any) -> bool:
    """Items are found wherever they stand: an order that others changed is told by the claims."""
    if _is_empty(wanted):
        return found is None or _is_empty(found) or isinstance(wanted, Mapping)
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _holds(found.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and all(
            any(_holds(other, one) for other in found) for one in wanted
        )
    return found is not None and canonical_json(found) == canonical_json(wanted)


def _claims_all(claims: Claims, wanted: Any, *, top: bool = True) -> bool:
    if _is_empty(wanted) or (not claims and not top):
        return True
    if isinstance(wanted, Mapping):
        return all(
            _is_empty(value)
            or (f"f:{name}" in claims and _claims_all(claims[f"f:{name}"], value, top=False))
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return all(_item_is_claimed(claims, one) for one in wanted)
    return True


def _item_is_claimed(claims: Claims, item: Any) -> bool:
    return any(
        _is_item(name, item) and _claims_all(below, item, top=False)
        for name, below in claims.items()
    )


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
