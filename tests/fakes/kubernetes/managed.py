"""Who owns which field: `metadata.managedFields`, kept by every write, asked by server-side apply.

A plain write (create, update, patch) takes what it changes and never conflicts; an apply owns what
it names, conflicts where another manager owns a field with another value, and drops what it named
before and names no longer (Kubernetes documentation, "Server-Side Apply").
"""

from dataclasses import dataclass
from typing import Any

from tests.fakes.kubernetes import fieldsets
from tests.fakes.kubernetes.fieldsets import Fields
from tests.fakes.kubernetes.shapes import Shape
from tests.fakes.kubernetes.status import ApiError

Document = dict[str, Any]

_SERVER_SET = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    }
)


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, how, and through which subresource."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""

    def entry(self, fields: Fields, now: str) -> Document:
        entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry

    def wrote(self, entry: Document) -> bool:
        """Whether an entry is this writer's; whoever applies is the same in every version."""
        if self.operation != "Apply" and entry["apiVersion"] != self.api_version:
            return False
        own = (self.manager, self.operation, self.subresource)
        return own == (entry["manager"], entry["operation"], entry.get("subresource", ""))


def ownable(document: Document) -> Document:
    """The part of an object whose fields have managers."""
    metadata = {
        name: value
        for name, value in document.get("metadata", {}).items()
        if name not in _SERVER_SET
    }
    rest = {
        name: value
        for name, value in document.items()
        if name not in ("apiVersion", "kind", "metadata")
    }
    return {"metadata": metadata, **rest} if metadata else rest


def after_update(
    old: Document | None, new: Document, writer: Writer, shape: Shape, now: str
) -> list[Document]:
    """The managed fields of `new`, which `writer` made of `old` by a plain write."""
    if old is None:
        return [writer.entry(fieldsets.fields_of(ownable(new), shape), now)]
    entries: list[Document] = old["metadata"].get("managedFields", [])
    changed, gone = fieldsets.changes(ownable(old), ownable(new), shape)
    if not changed and not gone:
        return entries
    kept: list[Document] = []
    own: Fields = {}
    for entry in entries:
        fields = fieldsets.without(entry["fieldsV1"], gone)
        if writer.wrote(entry):
            own = fields
        elif rest := fieldsets.minus(fields, changed):
            kept.append({**entry, "fieldsV1": rest})
    own = fieldsets.union(own, changed)
    return [*kept, writer.entry(own, now)] if own else kept


def applied(
    live: Document | None,
    config: Document,
    writer: Writer,
    shape: Shape,
    now: str,
    *,
    force: bool,
) -> tuple[Document, list[Document]]:
    """The object after an apply of `config`, and its managed fields.

    Raises 409 naming every other manager that owns a field with another value, unless `force`.
    """
    wanted = fieldsets.fields_of(ownable(config), shape)
    if live is None:
        return dict(config), [writer.entry(wanted, now)]
    entries: list[Document] = live["metadata"].get("managedFields", [])
    before = next((entry for entry in entries if writer.wrote(entry)), None)
    others = [entry for entry in entries if not writer.wrote(entry)]
    together = fieldsets.merged(live, config, shape)
    changed, _ = fieldsets.changes(ownable(live), ownable(together), shape)
    changed = fieldsets.common(changed, wanted)
    clashes = [(e, c) for e in others if (c := fieldsets.common(e["fieldsV1"], changed))]
    if clashes and not force:
        raise _conflict(clashes)
    kept = [
        {**entry, "fieldsV1": rest} if rest != entry["fieldsV1"] else entry
        for entry in others
        if (rest := fieldsets.minus(entry["fieldsV1"], changed))
    ]
    if before is not None:
        owned: Fields = {}
        for entry in kept:
            owned = fieldsets.union(owned, entry["fieldsV1"])
        together = fieldsets.prune(together, before["fieldsV1"], wanted, owned, shape)
    if before is not None and before["fieldsV1"] == wanted and not changed:
        return together, entries
    return together, [*kept, writer.entry(wanted, now)] if wanted else kept


def _conflict(clashes: list[tuple[Document, Fields]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{entry["manager"]}"{_using(entry)}',
            "field": path,
        }
        for entry, fields in clashes
        for path in sorted(fieldsets.paths(fields))
    ]
    plural = "conflict" if len(causes) == 1 else "conflicts"
    if len(causes) == 1:
        told = f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        told = "\n".join(
            f'conflicts with "{entry["manager"]}"{_using(entry)}:\n'
            + "\n".join(f"- {path}" for path in sorted(fieldsets.paths(fields)))
            for entry, fields in clashes
        )
    message = f"Apply failed with {len(causes)} {plural}: {told}"
    return ApiError(409, message, details={"causes": causes})


def _using(entry: Document) -> str:
    by = f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
    return f"{by} using {entry['apiVersion']}" if entry["operation"] != "Apply" else by
