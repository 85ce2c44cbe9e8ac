"""CustomResourceDefinitions: their own status, and the resources that come and go with them."""

from typing import Any

from tests.fakes.kubernetes.catalog import Catalog, Resource, resources_of_definition
from tests.fakes.kubernetes.metadata import timestamp
from tests.fakes.kubernetes.store import Store

Document = dict[str, Any]

KIND = "CustomResourceDefinition"


def establish(definition: Document) -> None:
    """Fill in names and status as the server's own controllers do, in place."""
    spec = definition["spec"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    status = definition.get("status") or {}
    conditions = status.get("conditions") or [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    definition["status"] = {
        "conditions": conditions,
        "acceptedNames": names,
        "storedVersions": list(dict.fromkeys([*status.get("storedVersions", ()), *stored])),
    }


def _condition(kind: str, reason: str, message: str) -> Document:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(),
    }


def follow(catalog: Catalog, resource: Resource, definition: Document) -> None:
    """Serve what a stored definition says; a resource of another kind changes nothing."""
    if resource.kind != KIND:
        return
    spec = definition["spec"]
    catalog.remove(spec["group"], spec["names"]["plural"])
    catalog.serve(resources_of_definition(definition))


def withdraw(catalog: Catalog, store: Store, definition: Document) -> None:
    """Stop serving a definition's resources: their objects go, their watches end."""
    for resource in resources_of_definition(definition)[:1]:
        store.drop(resource)
    spec = definition["spec"]
    catalog.remove(spec["group"], spec["names"]["plural"])
