"""Merge, JSON and strategic merge patches, as functions of a document and a patch."""

from typing import Any

import jsonpatch

from tests.fakes.kubernetes.fieldsets import element_of
from tests.fakes.kubernetes.shapes import Shape
from tests.fakes.kubernetes.status import ApiError

Document = dict[str, Any]


def merge_patched(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, maps merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def json_patched(target: Document, patch: Any) -> Document:
    """RFC 6902. A failing `test` or a missing path is 422, what is no patch at all is 400."""
    if not isinstance(patch, list):
        raise ApiError(400, "error decoding patch: json: cannot unmarshal object into Go value")
    try:
        result: Document = jsonpatch.apply_patch(target, patch)
    except (jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed) as error:
        raise _unprocessable() from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise _unprocessable() from error
    return result


def _unprocessable() -> ApiError:
    return ApiError(422, "the server rejected our request due to an error in our request")


def strategic_patched(target: Any, patch: Any, shape: Shape) -> Any:
    """As a merge patch, but keyed lists merge by key; `$patch: delete|replace` as documented."""
    if isinstance(patch, list) and isinstance(target, list) and (shape.keys or shape.is_set):
        return _strategic_items(target, patch, shape)
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            listed = name.partition("/")[2]
            result[listed] = [each for each in result.get(listed, []) if each not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = strategic_patched(result.get(name), value, shape.child(name))
    return result


def _strategic_items(target: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    if {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    items = {element_of(item, shape): item for item in target}
    for change in patch:
        key = element_of(change, shape)
        if isinstance(change, dict) and change.get("$patch") == "delete":
            items.pop(key, None)
        else:
            items[key] = strategic_patched(items.get(key), change, shape.item())
    return list(items.values())
