"""Children of an inference Service, and the parts of its pods."""

from typing import Any

from expansion_builders import open_model
from expansion_store import Document, Store, child

from inferbus_spec_watcher.expansion import Expansion


def expanded(document: Document, *others: Document, **settings: Any) -> Expansion:
    store = Store(document, *(others or (open_model(),)), **settings)
    return store.expand("Service", document["metadata"]["name"])


def template(result: Expansion, part: str = "workerTemplate") -> Document:
    groups = child(result, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    return dict(groups[part])


def pod(result: Expansion, part: str = "workerTemplate") -> Document:
    return dict(template(result, part)["spec"])


def runner(result: Expansion, part: str = "workerTemplate") -> Document:
    return next(one for one in pod(result, part)["containers"] if one["name"] == "model-runner")


def values(container: Document) -> dict[str, Any]:
    """Value, or Secret and key, by name of a variable."""
    found = {}
    for one in container.get("env", []):
        secret = one.get("valueFrom", {}).get("secretKeyRef")
        found[one["name"]] = (secret["name"], secret["key"]) if secret else one.get("value")
        assert secret is None or secret["optional"] is True
    return found
