from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.kube.problems import malformed
from inferbus_shared.kube.resources import NODE, POD
from inferbus_shared.kube.view import MalformedError, Relist, View, identify
from shared.tests.kube.scripted import pod

NAMES = st.sampled_from(["a", "b", "c"])


def label(document: Any) -> str | None:
    found = document["metadata"]["labels"].get("of")
    return None if found is None else str(found)


def view() -> View[int]:
    return View(POD, lambda document: int(document["metadata"]["resourceVersion"]), label)


def put(into: View[int], document: dict[str, Any]) -> bool:
    identity = identify(POD, document)
    return into.put(identity.key, into.keep(identity, document))


def key(name: str, namespace: str = "default") -> Any:
    return POD.key(namespace, name)


@given(st.permutations(list(range(1, 8))))
def test_whatever_the_order_the_newest_state_stays(revisions: list[int]) -> None:
    objects = view()
    for revision in revisions:
        put(objects, pod("a", revision))
    assert objects.get(key("a")) == 7


def test_a_deletion_takes_older_states_and_leaves_one_created_since() -> None:
    objects = view()
    put(objects, pod("a", 5))
    assert not objects.remove(key("a"), 4)
    assert objects.get(key("a")) == 5
    assert objects.remove(key("a"), 6)
    assert objects.get(key("a")) is None
    assert len(objects) == 0


@given(st.lists(st.tuples(NAMES, st.sampled_from([None, "x", "y"]), st.booleans()), max_size=30))
def test_the_index_is_what_a_scan_would_find(
    steps: list[tuple[str, str | None, bool]],
) -> None:
    objects = view()
    labels: dict[str, str | None] = {}
    for revision, (name, value, there) in enumerate(steps, start=1):
        if there:
            put(objects, pod(name, revision, **({} if value is None else {"of": value})))
            labels[name] = value
        else:
            objects.remove(key(name), revision)
            labels.pop(name, None)
    for value in ("x", "y"):
        expected = sorted(name for name, of in labels.items() if of == value)
        assert [found.name for found, _ in objects.by_index(value)] == expected
    assert objects.by_index("z") == ()
    assert [found.name for found, _ in objects.items()] == sorted(labels)


def test_items_of_a_namespace_are_its_own_and_in_order() -> None:
    objects = view()
    for name, namespace in (("b", "two"), ("a", "two"), ("c", "one")):
        put(objects, pod(name, 1, namespace))
    assert [one for one, _ in objects.items("two")] == [key("a", "two"), key("b", "two")]
    assert [one.name for one, _ in objects.items()] == ["c", "a", "b"]
    assert sorted(objects.clear("two")) == [key("a", "two"), key("b", "two")]
    assert len(objects) == 1


def test_a_list_takes_the_place_of_what_was_known() -> None:
    objects = view()
    for document in (pod("stays", 1), pod("changes", 2), pod("goes", 3), pod("own", 50)):
        put(objects, document)
    relist = Relist(objects, POD)
    for document in (pod("stays", 1), pod("changes", 20), pod("comes", 30)):
        relist.add(document)
    changed = relist.finish(40)
    assert sorted(one.name for one in changed) == ["changes", "comes", "goes"]
    assert [one.name for one, _ in objects.items()] == ["changes", "comes", "own", "stays"]


def test_a_list_that_begins_anew_forgets_its_pages() -> None:
    objects = view()
    relist = Relist(objects, POD)
    relist.add(pod("void", 1))
    relist.begin()
    relist.add(pod("a", 2))
    relist.finish(3)
    assert [one.name for one, _ in objects.items()] == ["a"]


def test_a_list_of_a_namespace_leaves_the_others_alone() -> None:
    objects = view()
    put(objects, pod("a", 1, "one"))
    put(objects, pod("b", 1, "two"))
    Relist(objects, POD, "one").finish(9)
    assert [one.name for one, _ in objects.items()] == ["b"]


def test_after_a_restore_nothing_known_counts() -> None:
    objects = view()
    put(objects, pod("a", 90))
    put(objects, pod("b", 91))
    relist = Relist(objects, POD)
    relist.add(pod("a", 8))
    changed = relist.finish(10, went_back=True)
    assert sorted(one.name for one in changed) == ["a", "b"]
    assert objects.get(key("a")) == 8


def test_an_object_that_cant_be_read_any_more_is_not_gone() -> None:
    objects = view()
    put(objects, pod("a", 1))
    relist = Relist(objects, POD)
    broken = pod("a", 5)
    broken["metadata"]["labels"] = None
    with pytest.raises(MalformedError, match="Pod/default/a"):
        relist.add(broken)
    assert relist.finish(6) == []
    assert objects.get(key("a")) == 1


def test_what_cant_be_read_is_forgotten_when_it_is_gone() -> None:
    objects = view()
    for name in ("Pod/one/a", "Pod/one/b", "Pod/two/a"):
        objects.malformed[name] = malformed("Pod", name, "it is broken")
    broken = pod("a", 5, "one")
    broken["metadata"]["labels"] = None
    relist = Relist(objects, POD, "one")
    with pytest.raises(MalformedError):
        relist.add(broken)
    relist.finish(6)
    assert sorted(objects.malformed) == ["Pod/one/a", "Pod/two/a"]


def _without(field: str, value: object) -> dict[str, Any]:
    document = pod("a", 1)
    document["metadata"][field] = value
    return document


@pytest.mark.parametrize(
    "document",
    [
        None,
        "x",
        [],
        {},
        {"metadata": None},
        {"metadata": []},
        *(_without("name", value) for value in (None, "", 5, {})),
        *(_without("uid", value) for value in (None, "", 5)),
        *(_without("namespace", value) for value in (None, "", 5)),
        *(_without("resourceVersion", value) for value in (None, "", 5, "x", "-1", "²")),
    ],
)
def test_an_object_without_identity_is_malformed(document: object) -> None:
    with pytest.raises(MalformedError):
        identify(POD, document)


def test_an_object_of_the_cluster_needs_no_namespace() -> None:
    node = pod("n", 4)
    del node["metadata"]["namespace"]
    assert identify(NODE, node).key == NODE.key("", "n")
