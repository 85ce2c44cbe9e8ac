"""The smallest JSON merge patch from one document to another (RFC 7396).

Pure. Invariant: applied to `before`, the patch gives `after`; it is empty when both say the same.
A null in `after` can't be said so, and counts as absent.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import canonical_json


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be patched."""
    wanted = {name: value for name, value in after.items() if value is not None}
    patch: dict[str, Any] = {
        name: None for name, value in before.items() if name not in wanted and value is not None
    }
    for name, value in wanted.items():
        known = before.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            inner = merge_patch(known, value)
            if inner:
                patch[name] = inner
        elif known is None or canonical_json(known) != canonical_json(value):
            patch[name] = value
    return patch
