"""What the API server serves.

Invariant: "not served" is only ever said when the API server itself lists its groups and resources
without it; a 404 may come from anything in between.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.problems import KubeError, not_the_api_server
from inferbus_shared.kube.resources import ApiResource

Served = tuple[str, str, str]
"""Group, version, plural."""

Fetch = Callable[[str], Awaitable[dict[str, Any]]]
"""GET of a path; raises `KubeError`."""


async def served(fetch: Fetch) -> frozenset[Served]:
    """Every resource of every group and version.

    A group whose own server doesn't answer is left out: an aggregated API that is down shall not
    hide the others. (kubectl, "couldn't get resource list for")
    """
    found: set[Served] = {("", "v1", plural) for plural in await _plurals(fetch, "/api/v1")}
    for group, version in sorted(await _versions(fetch)):
        try:
            plurals = await _plurals(fetch, f"/apis/{group}/{version}")
        except KubeError as error:
            if not error.status:
                raise
            continue
        found |= {(group, version, plural) for plural in plurals}
    return frozenset(found)


async def serves(fetch: Fetch, resource: ApiResource) -> bool:
    """Whether one resource is served; at most two requests."""
    if resource.group:
        versions = await _versions(fetch)
        if (resource.group, resource.version) not in versions:
            return False
    try:
        return resource.plural in await _plurals(fetch, resource.group_path)
    except KubeError as error:
        if error.code is ErrorCode.NOT_FOUND and resource.group:
            return (resource.group, resource.version) in await _versions(fetch)
        raise


async def _versions(fetch: Fetch) -> set[tuple[str, str]]:
    groups = _listed(await fetch("/apis"), "groups")
    return {
        (str(group.get("name")), str(version.get("version")))
        for group in groups
        for version in _dicts(group.get("versions"))
    }


async def _plurals(fetch: Fetch, path: str) -> set[str]:
    resources = _listed(await fetch(path), "resources")
    return {str(one.get("name")) for one in resources if "/" not in str(one.get("name"))}


def _listed(answer: dict[str, Any], field: str) -> Iterable[dict[str, Any]]:
    if not isinstance(answer.get(field), list):
        raise not_the_api_server(200, f"an answer without {field}", b"")
    return _dicts(answer[field])


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
