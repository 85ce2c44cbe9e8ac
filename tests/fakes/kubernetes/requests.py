"""Reading a request: which object of which resource it is about, and what it sends."""

from typing import Any

import orjson
import yaml

from tests.fakes.kubernetes.api import Options, Target
from tests.fakes.kubernetes.catalog import Catalog
from tests.fakes.kubernetes.status import ApiError

Document = dict[str, Any]

TRUE = frozenset({"true", "True", "1", "t", "T", "TRUE"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def target_of(catalog: Catalog, path: str) -> Target | None:
    """What a path names; None where nothing is served."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = catalog.find(group, version, rest[0])
    if resource is None or (namespace and not resource.namespaced) or len(rest) > 3:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if name and resource.namespaced and not namespace:
        return None
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)


def verb_of(method: str, target: Target, query: dict[str, str], content_type: str) -> str:
    """The Kubernetes verb of a request."""
    if method == "GET":
        if query.get("watch") in TRUE:
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if method == "PATCH" and content_type == APPLY:
        return "apply"
    return _VERBS.get(method, method.lower())


def document_of(raw: bytes) -> Document:
    """A JSON object. Raises 400 for anything else."""
    found = parsed(raw)
    if not isinstance(found, dict):
        raise ApiError(400, "the object provided is unrecognized (must be of type object)")
    return found


def parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the request body is no JSON: {error}") from error


def config_of(raw: bytes) -> Document:
    """What is applied: JSON, or any other YAML."""
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = yaml.safe_load(raw)
    if not isinstance(found, dict):
        raise ApiError(400, "error decoding YAML: not an object")
    return found


def options_of(query: dict[str, str], user_agent: str) -> Options:
    """Without a field manager, its name is what the client's User-Agent begins with."""
    return Options(
        manager=query.get("fieldManager") or user_agent.partition("/")[0] or "unknown",
        dry_run="All" in query.get("dryRun", ""),
        force=query.get("force") in TRUE,
    )
