"""What the server decides in an object's metadata: names, uid, generation, what may not change."""

import random
import re
import time
import uuid
from typing import Any

from tests.fakes.kubernetes.catalog import Resource
from tests.fakes.kubernetes.status import ApiError, conflict, invalid

Document = dict[str, Any]

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_BASE = 58
_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_KEPT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
)


def timestamp(offset_seconds: int = 0) -> str:
    """Now, as metav1.Time writes it: UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + offset_seconds))


def begin(resource: Resource, namespace: str, document: Document) -> None:
    """Make the metadata that of a new object, in place. Raises 400, 422 or 500 as it must."""
    metadata = document.setdefault("metadata", {})
    check_type(resource, document)
    if metadata.get("resourceVersion"):
        message = "resourceVersion should not be set on objects to be created"
        raise ApiError(500, message, reason="")
    check_namespace(resource, namespace, metadata)
    for name in (*_KEPT, "selfLink", "managedFields"):
        metadata.pop(name, None)
    if not metadata.get("name") and (base := metadata.get("generateName")):
        suffix = "".join(random.choices(_SUFFIX, k=5))
        metadata["name"] = base[:_MAX_GENERATED_BASE] + suffix
    _check_name(resource, metadata.get("name", ""))
    if resource.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp()
    if resource.generation:
        metadata["generation"] = 1


def without_empty(meta: Document) -> Document:
    """Empty maps, lists and texts are no part of an object's metadata."""
    return {name: value for name, value in meta.items() if value not in (None, "", [], {})}


def check_type(resource: Resource, document: Document) -> None:
    sent = document.get("apiVersion", ""), document.get("kind", "")
    if sent[0] not in ("", resource.api_version):
        message = (
            f"the API version in the data ({sent[0]}) does not match the expected API version"
            f" ({resource.api_version})"
        )
        raise ApiError(400, message)
    if sent[1] not in ("", resource.kind):
        message = (
            f"{resource.kind} in version {resource.version!r} cannot be handled as a"
            f" {resource.kind}: the kind in the data ({sent[1]}) does not match the expected kind"
            f" ({resource.kind})"
        )
        raise ApiError(400, message)
    document["apiVersion"], document["kind"] = resource.api_version, resource.kind


def check_namespace(resource: Resource, namespace: str, metadata: Document) -> None:
    if resource.namespaced and metadata.get("namespace") not in (None, "", namespace):
        message = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        raise ApiError(400, message)


def _check_name(resource: Resource, name: str) -> None:
    if not name:
        causes = [
            (
                "FieldValueRequired",
                "metadata.name",
                "Required value: name or generateName is required",
            )
        ]
        raise invalid(resource.group, resource.kind, "", causes)
    if not _NAME.match(name) or len(name) > 253:
        if resource.group == "rbac.authorization.k8s.io":
            return  # path segment names: `system:node` is one
        because = (
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case'
            " alphanumeric characters, '-' or '.', and must start and end with an alphanumeric"
            " character"
        )
        causes = [("FieldValueInvalid", "metadata.name", because)]
        raise invalid(resource.group, resource.kind, name, causes)


def carry_over(resource: Resource, old: Document, new: Document, *, whole: bool) -> None:
    """Give `new` what no update changes; raises for a stale or wrong precondition in its metadata.

    `whole`: the client sent a whole object (PUT), whose uid is a precondition; in a patch it is an
    immutable field.
    """
    before, after = old["metadata"], new.setdefault("metadata", {})
    name = before["name"]
    if after.get("name", name) != name:
        message = (
            f"the name of the object ({after['name']}) does not match the name on the URL ({name})"
        )
        raise ApiError(400, message)
    check_namespace(resource, before.get("namespace", ""), after)
    _check_uid(resource, before, after, whole=whole)
    version = after.get("resourceVersion")
    if not version and whole and resource.custom:
        because = "Invalid value: 0x0: must be specified for an update"
        causes = [("FieldValueInvalid", "metadata.resourceVersion", because)]
        raise invalid(resource.group, resource.plural, name, causes)
    if version and version != before["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name)
    _check_finalizers(resource, before, after)
    after["name"], after["resourceVersion"] = name, before["resourceVersion"]
    for key in _KEPT:
        if key in before:
            after[key] = before[key]
        else:
            after.pop(key, None)
    new["apiVersion"], new["kind"] = resource.api_version, resource.kind


def _check_uid(resource: Resource, before: Document, after: Document, *, whole: bool) -> None:
    uid, name = after.get("uid") or before["uid"], before["name"]
    if uid == before["uid"]:
        return
    if whole:
        because = f"UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise conflict(resource.group, resource.plural, name, f"Precondition failed: {because}")
    because = f'Invalid value: "{uid}": field is immutable'
    causes = [("FieldValueInvalid", "metadata.uid", because)]
    raise invalid(resource.group, resource.kind, name, causes)


def _check_finalizers(resource: Resource, before: Document, after: Document) -> None:
    added = set(after.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if before.get("deletionTimestamp") and added:
        because = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new"
            f" finalizers {sorted(added)}"
        )
        causes = [("FieldValueForbidden", "metadata.finalizers", because)]
        raise invalid(resource.group, resource.kind, before["name"], causes)


def raise_generation(resource: Resource, old: Document, new: Document) -> None:
    """Count the generation up when the wanted state changed (status apart, if separate)."""
    if not resource.generation:
        return
    apart = {"metadata", "status"} if resource.status else {"metadata"}
    names = (old.keys() | new.keys()) - apart
    if any(old.get(name) != new.get(name) for name in names):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
