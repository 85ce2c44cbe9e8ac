"""Reading a list page by page, whatever happens to the server's history meanwhile.

Invariant: the pages since the last that `begins` are one list as it stood at one revision.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_shared.kube.problems import GONE, KubeError, not_the_api_server
from inferbus_shared.kube.resources import ApiResource

PAGED_TRIES = 3
"""As often a list is paged that is older than the server's history before it ends; then it is read
in one piece, which can't grow old (client-go, `pager.FullListIfExpired`)."""

Fetch = Callable[[Mapping[str, str]], Awaitable[dict[str, Any]]]
"""GET of the collection with a query; raises `KubeError`."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list."""

    items: Sequence[dict[str, Any]]
    revision: str
    """The resourceVersion of the whole list, a number; a watch goes on from there."""
    begins: bool
    """Whether the list begins here, anew if there were pages before."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a list as they stood at one revision."""

    items: list[dict[str, Any]]
    revision: str


def selection(label_selector: str, name: str = "") -> dict[str, str]:
    """The part of a query that selects: by labels, and the object of one name alone."""
    labels = {"labelSelector": label_selector} if label_selector else {}
    return labels | ({"fieldSelector": f"metadata.name={name}"} if name else {})


async def pages_of(
    fetch: Fetch, resource: ApiResource, selected: Mapping[str, str], page_size: int
) -> AsyncIterator[Page]:
    """All objects in pages of `page_size`, or in one piece when that is 0; raises `KubeError`.

    The server forgets a list that is read too slowly (410, after about five minutes).
    """
    expired = 0
    token = ""
    while True:
        query = dict(selected)
        if page_size and expired < PAGED_TRIES:
            query["limit"] = str(page_size)
        if token:
            query["continue"] = token
        try:
            answer = await fetch(query)
        except KubeError as error:
            if error.status != GONE or not token:
                raise
            token = ""
            expired += 1
            continue
        page, following = _page(resource, answer, begins=not token)
        yield page
        if not following:
            return
        token = following


def _page(resource: ApiResource, answer: dict[str, Any], *, begins: bool) -> tuple[Page, str]:
    """A page and the token of the next; raises `KubeError` where it is none."""
    metadata = answer.get("metadata")
    items = answer.get("items", ())
    if not isinstance(metadata, dict) or not isinstance(items, list | tuple | None):
        raise not_the_api_server(200, f"a list of {resource.plural} that is none", b"")
    revision, following = metadata.get("resourceVersion"), metadata.get("continue")
    if not isinstance(revision, str) or not revision.isdecimal():
        raise not_the_api_server(200, f"a list of {resource.plural} without a revision", b"")
    if not isinstance(following, str | None):
        raise not_the_api_server(200, f"a list of {resource.plural} that goes on nowhere", b"")
    return Page(items or (), revision, begins), following or ""
