"""Whole manifests of children, and the names they get.

Invariant: the same text always gives the same name, different texts different ones, and a name is
changed only when pods or Services could not be called after it.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import digest, digest_bytes
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.resources.names import LABEL_LENGTH, fitted_name, is_dns1035_label
from inferbus_spec_watcher.expansion.context import Context

REVISION_LENGTH = 10


def manifest(
    context: Context,
    kind: str,
    name: str,
    spec: Mapping[str, Any],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A child of the kind with this token, in its parent's namespace.

    It has its parent's steering annotations and, over them, `annotations`.
    """
    metadata = present(
        name=name,
        namespace=context.key.namespace,
        labels=dict(labels or {}),
        annotations={**context.inherited_annotations, **(annotations or {})},
    )
    return {
        "apiVersion": KINDS[kind].api_version,
        "kind": KINDS[kind].kind,
        "metadata": metadata,
        "spec": dict(spec),
    }


def derived_name(text: str, limit: int = LABEL_LENGTH) -> str:
    """`text` where it is a DNS-1035 label of at most `limit` characters, else one made from it.

    Pods, their host names and Services are called after it (modelserving spec 2.1). What is made
    ends in eight hexadecimal digits of the text's digest. `limit` is at least 12.
    """
    if is_dns1035_label(text) and len(text) <= limit:
        return text
    plain = text.lower().replace(".", "-")
    if not plain[:1].isalpha():
        plain = f"m-{plain}"
    return f"{plain[: limit - 9].rstrip('-')}-{digest_bytes(text.encode())[:8]}"


def part_name(text: str, suffix: str) -> str:
    """A name for a container or volume, which no dot may be in; it always ends in `suffix`."""
    return fitted_name(text.replace(".", "-"), LABEL_LENGTH - len(suffix)) + suffix


def revision(spec: Mapping[str, Any]) -> str:
    """What tells one generated spec from another, replicas apart (modelbooster spec 7.6)."""
    content = {name: value for name, value in spec.items() if name != "replicas"}
    return digest(content)[:REVISION_LENGTH]


def present(**fields: Any) -> dict[str, Any]:
    """The fields that hold something: None and empty collections are left out."""
    return {name: value for name, value in fields.items() if value not in (None, [], {}, ())}
