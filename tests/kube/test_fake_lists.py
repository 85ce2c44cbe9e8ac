"""Lists and watches on both servers: selectors, pages, resuming, what is seen of each write."""

from typing import Any

import pytest

from tests.kube.definitions import Widgets
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]


def config_map(name: str, **labels: str) -> Document:
    return {"metadata": {"name": name, "labels": labels}}


def pod(name: str, **labels: str) -> Document:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }


def seen(events: list[Document]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", ["a", "b", "c"]),
        ("x=1", ["a"]),
        ("x==1", ["a"]),
        ("x!=1", ["b", "c"]),
        ("x in (1, 2)", ["a", "b"]),
        ("x notin (1,3)", ["b", "c"]),
        ("x", ["a", "b"]),
        ("!x", ["c"]),
        ("x,y=z", ["b"]),
        ("x in (1,2),y!=z", ["a"]),
        ("x=", []),
    ],
)
async def test_label_selectors(
    kube_calls: KubeCalls, namespace: str, selector: str, names: list[str]
) -> None:
    path = path_of("secrets", namespace)
    for body in (config_map("a", x="1"), config_map("b", x="2", y="z"), config_map("c", y="z")):
        await kube_calls.post(path, body)
    listed = await kube_calls.get(path, labelSelector=selector)
    assert listed.names == names


async def test_field_selectors(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("pods", namespace)
    for name in ("a", "b"):
        await kube_calls.post(path, pod(name))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await kube_calls.post(f"{path}/a/binding", binding)).code == 201
    running = {"status": {"phase": "Running"}}
    assert (await kube_calls.merge(f"{path}/a/status", running)).code == 200
    expected = {
        "metadata.name=a": ["a"],
        "metadata.name!=a": ["b"],
        f"metadata.namespace={namespace}": ["a", "b"],
        "spec.nodeName=n1": ["a"],
        "spec.nodeName=": ["b"],
        "status.phase=Running": ["a"],
        "status.phase!=Running,metadata.name=b": ["b"],
    }
    for selector, names in expected.items():
        listed = await kube_calls.get(path, fieldSelector=selector)
        assert listed.names == names, selector
    unknown = await kube_calls.get(path, fieldSelector="spec.none=1")
    assert (unknown.code, unknown.body["reason"]) == (400, "BadRequest")


async def test_selectors_that_cannot_be_read(kube_calls: KubeCalls, namespace: str) -> None:
    answer = await kube_calls.get(path_of("pods", namespace), labelSelector="a in b")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_items_of_built_in_lists_name_no_kind(kube_calls: KubeCalls, namespace: str) -> None:
    await kube_calls.post(path_of("configmaps", namespace), config_map("a"))
    listed = await kube_calls.get(path_of("configmaps", namespace))
    assert (listed.body["kind"], listed.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert not {"kind", "apiVersion"} & listed.items[0].keys()
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget())
    custom = await kube_calls.get(widgets.path())
    assert custom.body["kind"] == "WidgetList"
    assert custom.items[0]["kind"] == "Widget"
    assert custom.items[0]["apiVersion"] == widgets.api_version


async def test_pages_are_of_one_moment(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace)
    for number in range(5):
        await kube_calls.post(path, config_map(f"a{number}"))
    existing = (await kube_calls.get(path)).names  # some servers put one there by themselves
    first = await kube_calls.get(path, limit="2")
    assert first.names == existing[:2]
    assert first.body["metadata"]["remainingItemCount"] == len(existing) - 2
    await kube_calls.delete(f"{path}/a4")
    await kube_calls.post(path, config_map("z"))
    found, page = first.names, first
    while token := page.body["metadata"].get("continue"):
        page = await kube_calls.get(path, limit="2", **{"continue": token})
        assert page.revision == first.revision
        found += page.names
    assert found == existing


async def test_a_continue_token_that_is_none(kube_calls: KubeCalls, namespace: str) -> None:
    answer = await kube_calls.get(path_of("pods", namespace), limit="1", **{"continue": "junk"})
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_a_revision_that_is_yet_to_come(kube_calls: KubeCalls, namespace: str) -> None:
    answer = await kube_calls.get(path_of("pods", namespace), resourceVersion="99999999")
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert answer.headers["Retry-After"] == "1"
    [cause] = answer.body["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize("flag", ["true", "1", "True"])
async def test_a_watch_from_a_list_sees_what_came_after_it(
    kube_calls: KubeCalls, namespace: str, flag: str
) -> None:
    path = path_of("secrets", namespace)
    await kube_calls.post(path, config_map("a"))
    revision = (await kube_calls.get(path)).revision
    await kube_calls.post(path, config_map("b"))
    await kube_calls.merge(f"{path}/b", {"metadata": {"labels": {"x": "1"}}})
    deleted = (await kube_calls.get(f"{path}/a")).revision
    await kube_calls.delete(f"{path}/a")
    async with kube_calls.watch(path, resourceVersion=revision, watch=flag) as watch:
        events = await watch.events(3)
    assert seen(events) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)
    assert revisions[-1] > int(deleted)
    assert events[0]["object"]["kind"] == "Secret"


async def test_a_watch_without_a_revision_begins_with_what_is_there(
    kube_calls: KubeCalls, namespace: str
) -> None:
    path = path_of("secrets", namespace)
    for name in ("b", "a"):
        await kube_calls.post(path, config_map(name))
    async with kube_calls.watch(path) as watch:
        assert sorted(seen(await watch.events(2))) == [("ADDED", "a"), ("ADDED", "b")]
        await kube_calls.post(path, config_map("c"))
        assert seen(await watch.events(1)) == [("ADDED", "c")]


async def test_a_watch_of_a_selection_sees_objects_come_and_go(
    kube_calls: KubeCalls, namespace: str
) -> None:
    path = path_of("secrets", namespace)
    await kube_calls.post(path, config_map("a", x="1"))
    await kube_calls.post(path, config_map("b"))
    revision = (await kube_calls.get(path)).revision
    query = {"resourceVersion": revision, "labelSelector": "x=1"}
    async with kube_calls.watch(path, **query) as watch:
        await kube_calls.merge(f"{path}/a", {"metadata": {"labels": {"x": "2"}}})
        await kube_calls.merge(f"{path}/b", {"metadata": {"labels": {"x": "1"}}})
        await kube_calls.delete(f"{path}/a")
        await kube_calls.delete(f"{path}/b")
        events = await watch.events(3)
    assert seen(events) == [("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    # What left the selection is told as it was in it, at the revision of the write.
    assert events[0]["object"]["metadata"]["labels"] == {"x": "1"}
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > int(revision)


async def test_a_watch_of_fields(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("pods", namespace)
    await kube_calls.post(path, pod("a"))
    revision = (await kube_calls.get(path)).revision
    query = {"resourceVersion": revision, "fieldSelector": "spec.nodeName=n1"}
    async with kube_calls.watch(path, **query) as watch:
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        await kube_calls.post(f"{path}/a/binding", binding)
        assert seen(await watch.events(1)) == [("ADDED", "a")]


async def test_a_watch_from_the_future_is_silent(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("secrets", namespace)
    query = {"resourceVersion": "99999999", "timeoutSeconds": "1"}
    async with kube_calls.watch(path, **query) as watch:
        await kube_calls.post(path, config_map("a"))
        assert await watch.rest() == []


async def test_bookmarks_say_how_far_a_watch_is(fake_kube_server: KubeServer) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    async with fake_kube_server.calls() as calls:
        path = path_of("secrets", "default")
        query = {"resourceVersion": "1", "allowWatchBookmarks": "true"}
        async with calls.watch(path, **query) as watch:
            await calls.post(path_of("configmaps", "default"), config_map("a"))
            revision = (await calls.get(path)).revision
            await eventually(lambda: fake.send_bookmarks())
            event = await watch.event()
    assert event is not None
    assert event["type"] == "BOOKMARK"
    assert event["object"]["kind"] == "Secret"
    assert event["object"]["metadata"]["resourceVersion"] == revision


async def test_after_compaction_watches_and_pages_begin_anew(
    fake_kube_server: KubeServer,
) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    async with fake_kube_server.calls() as calls:
        path = path_of("secrets", "default")
        for name in ("a", "b", "c"):
            await calls.post(path, config_map(name))
        first = await calls.get(path, limit="1")
        await calls.delete(f"{path}/c")
        fake.compact()
        async with calls.watch(path, resourceVersion=first.revision) as watch:
            [event] = await watch.rest()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert (event["object"]["kind"], event["object"]["reason"]) == ("Status", "Expired")
        token = first.body["metadata"]["continue"]
        page = await calls.get(path, limit="1", **{"continue": token})
        assert (page.code, page.body["reason"]) == (410, "Expired")
        again = await calls.get(path, **{"continue": page.body["metadata"]["continue"]})
        assert again.names == ["b"]
        now = (await calls.get(path)).revision
        async with calls.watch(path, resourceVersion=now, timeoutSeconds="1") as watch:
            assert await watch.rest() == []
