"""What each verb does with the API, and the JSON it answers with."""

from collections.abc import Callable
from typing import Any

import orjson

from tests.fakes.kubernetes import subresources
from tests.fakes.kubernetes.api import Api, Options, Target
from tests.fakes.kubernetes.deletion import DeleteOptions, delete
from tests.fakes.kubernetes.faults import Call
from tests.fakes.kubernetes.patches import json_patched, merge_patched, strategic_patched
from tests.fakes.kubernetes.reading import Selection, list_json, listing
from tests.fakes.kubernetes.requests import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC,
    config_of,
    document_of,
    options_of,
    parsed,
)
from tests.fakes.kubernetes.status import ApiError, not_allowed
from tests.fakes.kubernetes.store import Stored

Document = dict[str, Any]
PROTOBUF = "application/vnd.kubernetes.protobuf"
Answered = tuple[int, bytes]


def answer(api: Api, target: Target, call: Call, content_type: str, agent: str) -> Answered:
    """Carry a call out. Raises `ApiError` for everything that is refused."""
    options = options_of(call.query, agent)
    match call.verb:
        case "get":
            return 200, _shown(target, api.get(target))
        case "list":
            return 200, listing(api.store, target, call.query)
        case "create":
            return _create(api, target, call, options, content_type)
        case "update":
            sent = document_of(call.raw)
            return 200, _shown(target, _update(api, target, lambda _: sent, options, whole=True))
        case "patch":
            change = _patching(target, call.raw, content_type)
            return 200, _shown(target, _update(api, target, change, options, whole=False))
        case "apply":
            return _apply(api, target, call, options)
        case "delete":
            body = document_of(call.raw) if call.raw else {}
            deleted = delete(api, target, DeleteOptions.read(body, call.query))
            return 200, orjson.dumps(deleted)
        case "deletecollection":
            return 200, _delete_all(api, target, call)
    raise not_allowed()


def _shown(target: Target, found: Stored) -> bytes:
    if target.subresource == "scale":
        return orjson.dumps(subresources.scale_of(target.resource, found.document(target.resource)))
    return found.json(target.resource)


def _create(api: Api, target: Target, call: Call, options: Options, content_type: str) -> Answered:
    if content_type == PROTOBUF:
        raise ApiError(415, "this server reads and writes JSON alone")
    document = document_of(call.raw)
    if not target.name:
        return 201, _shown(target, api.create(target, document, options))
    if target.subresource not in ("binding", "eviction"):
        raise not_allowed()
    act = subresources.bind if target.subresource == "binding" else subresources.evict
    act(api, target, document, options)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return 201, orjson.dumps({**status, "code": 201})


def _update(
    api: Api,
    target: Target,
    make: Callable[[Document], Document],
    options: Options,
    *,
    whole: bool,
) -> Stored:
    if target.subresource == "scale":
        return subresources.update_scale(api, target, make, options)
    return api.update(target, make, options, whole=whole)


def _patching(target: Target, raw: bytes, content_type: str) -> Callable[[Document], Document]:
    if content_type == JSON_PATCH:
        return lambda document: json_patched(document, parsed(raw))
    if content_type == MERGE_PATCH:
        patch = document_of(raw)
        return lambda document: merge_patched(document, patch)
    if content_type == STRATEGIC and not target.resource.custom:
        patch = document_of(raw)
        return lambda document: strategic_patched(document, patch, target.resource.shape)
    accepted = [JSON_PATCH, MERGE_PATCH, "application/apply-patch+yaml"]
    if not target.resource.custom:
        accepted.insert(2, STRATEGIC)
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    raise ApiError(415, message)


def _apply(api: Api, target: Target, call: Call, options: Options) -> Answered:
    if not call.query.get("fieldManager"):
        because = "fieldManager: Required value: is required for apply patch"
        raise ApiError(422, f'PatchOptions.meta.k8s.io "" is invalid: {because}')
    config = config_of(call.raw)
    if target.subresource == "scale":
        return 200, _shown(target, subresources.apply_scale(api, target, config, options))
    stored, new = api.apply(target, config, options)
    return 201 if new else 200, _shown(target, stored)


def _delete_all(api: Api, target: Target, call: Call) -> bytes:
    body = document_of(call.raw) if call.raw else {}
    wanted = DeleteOptions.read(body, call.query)
    selection = Selection.read(target, call.query)
    resource = target.resource
    found = [
        each for each in api.store.collection(resource).objects.values() if selection.takes(each)
    ]
    for each in found:
        delete(api, Target(resource, each.namespace, each.name), wanted)
    return list_json(resource, {"resourceVersion": str(api.store.revision)}, found)
