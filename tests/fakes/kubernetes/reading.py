"""Lists: selected, in key order, in pages that are consistent with the first one's revision."""

import base64
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fakes.kubernetes.api import Target
from tests.fakes.kubernetes.catalog import Resource
from tests.fakes.kubernetes.selectors import (
    Requirement,
    field_requirements,
    label_requirements,
)
from tests.fakes.kubernetes.status import ApiError, expired
from tests.fakes.kubernetes.store import Key, Store, Stored

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start"
    " a new list without the continue parameter, or use the continue token in this response to"
    " retrieve the remainder of the results."
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a list or a watch is about."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @classmethod
    def read(cls, target: Target, query: dict[str, str]) -> "Selection":
        supported = target.resource.selectable
        return cls(
            namespace=target.namespace,
            labels=label_requirements(query.get("labelSelector", "")),
            fields=field_requirements(query.get("fieldSelector", ""), supported),
        )

    @property
    def everything(self) -> bool:
        return not (self.labels or self.fields)

    def takes(self, each: Stored) -> bool:
        if self.namespace and each.namespace != self.namespace:
            return False
        return all(wanted(each.labels) for wanted in self.labels) and all(
            wanted(each.fields) for wanted in self.fields
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Where a list begins: after a key, at a revision (0: now)."""

    after: Key = ("", "")
    revision: int = 0

    def token(self) -> str:
        content = {"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.after}
        return base64.urlsafe_b64encode(orjson.dumps(content)).decode()

    @classmethod
    def read(cls, token: str) -> "Page":
        try:
            content = orjson.loads(base64.urlsafe_b64decode(token))
            return cls((content["start"][0], content["start"][1]), int(content["rv"]))
        except (ValueError, LookupError, TypeError) as error:
            raise ApiError(
                400, f"invalid continue token: continue key is not valid: {error}"
            ) from error


def check_revision(store: Store, asked: int) -> None:
    """A revision that is yet to come is 504, as a cache that never catches up."""
    if asked > store.revision:
        message = f"Timeout: Too large resource version: {asked}, current: {store.revision}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise ApiError(504, message, details={"causes": causes}, retry_after_seconds=1)


def revision_of(text: str) -> int:
    if not text.isdigit():
        because = f'resourceVersion: Invalid value: "{text}": invalid syntax'
        raise ApiError(400, f"invalid resource version: {because}")
    return int(text)


def listing(store: Store, target: Target, query: dict[str, str]) -> bytes:
    """A list's JSON. Raises 410 for a page whose revision is forgotten."""
    selection = Selection.read(target, query)
    limit = int(query.get("limit") or 0)
    page = Page.read(query["continue"]) if query.get("continue") else Page()
    if (asked := query.get("resourceVersion")) and not query.get("continue"):
        _check_asked(store, revision_of(asked), query.get("resourceVersionMatch", ""))
    keys, objects = _snapshot(store, target.resource, page)
    found: list[Stored] = []
    more = False
    for key in keys:
        each = objects[key]
        if selection.takes(each):
            if limit and len(found) == limit:
                more = True
                break
            found.append(each)
    revision = page.revision or store.revision
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    if more:
        last = found[-1]
        meta["continue"] = Page((last.namespace, last.name), revision).token()
        if selection.everything:
            left = sum(key[0] == target.namespace or not target.namespace for key in keys)
            meta["remainingItemCount"] = left - len(found)
    elif target.resource.custom:
        meta["continue"] = ""
    return list_json(target.resource, meta, found)


def _check_asked(store: Store, asked: int, match: str) -> None:
    check_revision(store, asked)
    if match == "Exact" and asked < store.compacted:
        raise ApiError(410, f"The resourceVersion for the provided list is too old. ({asked})")


def _snapshot(store: Store, resource: Resource, page: Page) -> tuple[list[Key], dict[Key, Stored]]:
    collection = store.collection(resource)
    if not page.revision:
        return [key for key in collection.sorted_keys() if key > page.after], collection.objects
    if page.revision < store.compacted:
        again = Page(page.after).token()
        raise ApiError(410, _TOO_OLD, metadata={"continue": again})
    objects = collection.at(page.revision)
    return sorted(key for key in objects if key > page.after), objects


def list_json(resource: Resource, meta: dict[str, Any], found: list[Stored]) -> bytes:
    """A list of what was found, its items joined as they are stored."""
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta}
    prefix = resource.item_prefix
    items = b",".join([prefix + each.rest for each in found])
    return orjson.dumps(head)[:-1] + b',"items":[' + items + b"]}"


def starting_revision(store: Store, query: dict[str, str]) -> int | None:
    """Where a watch begins; None: with everything there is. Raises 410 where that is forgotten."""
    asked = query.get("resourceVersion") or "0"
    revision = revision_of(asked)
    if revision == 0:
        return None
    if revision < store.compacted:
        raise expired(revision, store.compacted)
    return revision
