"""Whoever reads the news of a node's pods knows exactly the pods that are bound to it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from node_agent_builders import deleted, pod

from inferbus_contracts.keys import ObjectKey
from inferbus_node_agent.bound_pods import BoundPods
from inferbus_node_agent.ports import PodApplied, PodNews, PodRemoved, PodSnapshot

HERE = "n1"
Document = dict[str, Any]


class Picture:
    """A `PodPicture` that a test draws."""

    def __init__(self) -> None:
        self.held: dict[ObjectKey, Document] = {}
        self._listeners: list[Callable[[ObjectKey], None]] = []

    def set(self, document: Document) -> None:
        self._draw(key_of(document), document)

    def remove(self, document: Document) -> None:
        self._draw(key_of(document), None)

    def _draw(self, key: ObjectKey, document: Document | None) -> None:
        self.held.pop(key, None)
        if document is not None:
            self.held[key] = document
        for listener in self._listeners:
            listener(key)

    async def ready(self) -> None:
        pass

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        self._listeners.append(listener)

    def pods(self) -> list[tuple[ObjectKey, Document]]:
        return list(self.held.items())

    def pod(self, key: ObjectKey) -> Document | None:
        return self.held.get(key)


def key_of(document: Document) -> ObjectKey:
    return ObjectKey("Pod", "default", document["metadata"]["name"])


def bound(name: str, node: str = HERE) -> Document:
    return pod(name, nodeName=node)


def uid_of(document: Document) -> str:
    return str(document["metadata"]["uid"])


@pytest.fixture
def picture() -> Picture:
    return Picture()


def watched(picture: Picture) -> AsyncIterator[PodNews]:
    return aiter(BoundPods(picture, HERE).watch())


async def test_the_snapshot_holds_the_nodes_own_pods(picture: Picture) -> None:
    mine = bound("a")
    for document in (mine, bound("b", "elsewhere"), pod("nowhere")):
        picture.set(document)
    assert await anext(watched(picture)) == PodSnapshot([mine])


async def test_a_pod_appears_when_it_is_bound_and_ends_when_its_object_goes(
    picture: Picture,
) -> None:
    news = watched(picture)
    assert await anext(news) == PodSnapshot([])
    document = pod("a")
    picture.set(document)
    now = document | {"spec": document["spec"] | {"nodeName": HERE}}
    picture.set(now)
    assert await anext(news) == PodApplied(now)
    picture.set(deleted(now))
    assert await anext(news) == PodApplied(deleted(now))
    picture.remove(now)
    assert await anext(news) == PodRemoved(uid_of(now))


async def test_another_pod_of_the_same_name_is_another_pod(picture: Picture) -> None:
    first, second = bound("a"), bound("a")
    picture.set(first)
    news = watched(picture)
    await anext(news)
    picture.set(second)
    assert await anext(news) == PodRemoved(uid_of(first))
    assert await anext(news) == PodApplied(second)


async def test_what_says_the_same_is_no_news(picture: Picture) -> None:
    document = bound("a")
    picture.set(document)
    news = watched(picture)
    await anext(news)
    picture.set(document | {})
    picture.set(deleted(document))
    assert await anext(news) == PodApplied(deleted(document))


_POOL = [[bound("a"), bound("a"), bound("a", "elsewhere"), pod("a")], [bound("b"), pod("b")]]
_STEPS = st.lists(
    st.sampled_from([(one, there) for group in _POOL for one in group for there in (True, False)]),
    max_size=12,
)


@given(_STEPS, _STEPS)
async def test_news_add_up_to_the_picture(
    before: list[tuple[Document, bool]], after: list[tuple[Document, bool]]
) -> None:
    picture = Picture()

    def draw(steps: list[tuple[Document, bool]]) -> None:
        for document, there in steps:
            (picture.set if there else picture.remove)(document)

    draw(before)
    news = watched(picture)
    snapshot = await anext(news)
    assert isinstance(snapshot, PodSnapshot)
    known = {uid_of(one): one for one in snapshot.documents}
    draw(after)
    last = bound("last")
    picture.set(last)
    async for one in news:
        match one:
            case PodApplied(document):
                known[uid_of(document)] = document
            case PodRemoved(uid):
                del known[uid]
        if one == PodApplied(last):
            break
    assert known == {
        uid_of(one): one for one in picture.held.values() if one["spec"].get("nodeName") == HERE
    }
