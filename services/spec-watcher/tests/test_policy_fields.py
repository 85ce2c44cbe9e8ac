"""Who owns which field after which apply: the rules of server-side apply, for any documents."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.canonical import canonical_json
from inferbus_spec_watcher.policy_fields import (
    Merge,
    Owners,
    applied_fields,
    get_field,
    merge,
    remove_field,
    set_field,
)

NAMES = st.sampled_from(["a", "b", "c", "d/e", "f~g"])
LEAVES = st.one_of(
    st.integers(0, 3), st.booleans(), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2))
)
VALUES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
DOCUMENTS = st.builds(
    lambda spec, labels: {"spec": spec, "metadata": {"labels": labels}},
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.dictionaries(NAMES, st.sampled_from(["x", "y"]), max_size=2),
)
MANAGERS = st.sampled_from(["cli", "folder", "scale"])
HISTORIES = st.lists(st.tuples(MANAGERS, DOCUMENTS, st.booleans()), max_size=4)


def document(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def same(one: Any, other: Any) -> bool:
    """As JSON: in Python, true equals 1."""
    return canonical_json(one) == canonical_json(other)


def after(history: list[tuple[str, dict[str, Any], bool]]) -> Merge:
    """The object after these applies; one that is refused changes nothing."""
    state = Merge({}, {})
    for manager, applied, force in history:
        result = merge(state.object, state.owners, applied, manager, force=force)
        state = state if result.conflicts else result
    return state


def owned(owners: Owners) -> frozenset[str]:
    return frozenset[str]().union(*owners.values())


@given(HISTORIES, MANAGERS, DOCUMENTS, st.booleans())
def test_applying_twice_is_applying_once(
    history: list[Any], manager: str, applied: dict[str, Any], force: bool
) -> None:
    state = after(history)
    once = merge(state.object, state.owners, applied, manager, force=force)
    if once.conflicts:
        return
    assert merge(once.object, once.owners, applied, manager, force=force) == once
    assert merge(once.object, once.owners, applied, manager) == once, "no force is needed again"


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_what_is_applied_stands_there_and_is_owned(
    history: list[Any], manager: str, applied: dict[str, Any]
) -> None:
    state = after(history)
    result = merge(state.object, state.owners, applied, manager, force=True)
    assert not result.conflicts
    for path, value in applied_fields(applied).items():
        found = get_field(result.object, path)
        assert same(found, value) or (value == {} and isinstance(found, dict))
        assert path in result.owners[manager]


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_without_force_no_field_of_another_changes(
    history: list[Any], manager: str, applied: dict[str, Any]
) -> None:
    state = after(history)
    result = merge(state.object, state.owners, applied, manager)
    if result.conflicts:
        return
    for other, paths in state.owners.items():
        if other == manager:
            continue
        assert result.owners[other] == paths
        for path in paths:
            before, now = get_field(state.object, path), get_field(result.object, path)
            asked_for_a_mapping = isinstance(before, dict) and isinstance(now, dict)
            assert same(before, now) or asked_for_a_mapping


@given(HISTORIES)
def test_every_field_that_is_owned_is_there_and_every_field_there_is_owned(
    history: list[Any],
) -> None:
    state = after(history)
    for path in owned(state.owners):
        assert get_field(state.object, path) is not None
    for path in applied_fields(state.object):
        assert path in owned(state.owners)


@given(HISTORIES, MANAGERS)
def test_who_applies_nothing_any_more_leaves_only_what_others_own(
    history: list[Any], manager: str
) -> None:
    state = after(history)
    result = merge(state.object, state.owners, {}, manager)
    assert not result.conflicts
    others = {name: paths for name, paths in state.owners.items() if name != manager}
    assert {name: paths for name, paths in result.owners.items() if paths} == others
    assert set(applied_fields(result.object)) <= owned(others)


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_a_conflict_is_another_value_of_anothers_field(
    history: list[Any], manager: str, applied: dict[str, Any]
) -> None:
    state = after(history)
    result = merge(state.object, state.owners, applied, manager)
    claimed = applied_fields(applied)
    told = {(conflict.path, conflict.manager) for conflict in result.conflicts}
    equal = {
        (path, name)
        for path, value in claimed.items()
        for name, paths in state.owners.items()
        if name != manager
        and path in paths
        and not same(get_field(state.object, path), value)
        and not (value == {} and isinstance(get_field(state.object, path), dict))
    }
    assert equal <= told
    for conflict in result.conflicts:
        assert conflict.manager != manager
        assert not same(conflict.ours, conflict.theirs)


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_a_merge_touches_neither_the_stored_object_nor_the_document(
    history: list[Any], manager: str, applied: dict[str, Any]
) -> None:
    state = after(history)
    before = repr((state, applied))
    merge(state.object, state.owners, applied, manager, force=True)
    assert repr((state, applied)) == before


@pytest.mark.parametrize("force", [False, True])
def test_two_managers_of_one_value_share_it(force: bool) -> None:
    first = merge({}, {}, document(a=1), "cli")
    both = merge(first.object, first.owners, document(a=1), "folder", force=force)
    assert not both.conflicts
    assert both.owners == {"cli": {"/spec/a"}, "folder": {"/spec/a"}}
    left = merge(both.object, both.owners, document(), "cli")
    assert left.object == document(a=1), "the other still wants it"


def test_force_takes_a_field_over_and_its_owner_loses_it() -> None:
    first = merge({}, {}, document(a=1, b=2), "cli")
    contested = merge(first.object, first.owners, document(a=5), "folder")
    (conflict,) = contested.conflicts
    assert (conflict.path, conflict.manager, conflict.theirs, conflict.ours) == (
        "/spec/a",
        "cli",
        1,
        5,
    )
    taken = merge(first.object, first.owners, document(a=5), "folder", force=True)
    assert taken.object == document(a=5, b=2)
    assert taken.owners == {"cli": {"/spec/b"}, "folder": {"/spec/a"}}


def test_a_yielding_manager_gives_its_fields_up_without_a_conflict() -> None:
    first = merge({}, {}, document(a=1), "scale")
    taken = merge(first.object, first.owners, document(a=5), "cli", yielding=frozenset({"scale"}))
    assert not taken.conflicts
    assert taken.object == document(a=5)


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), ([1], [True])])
def test_true_is_not_one(before: Any, after: Any) -> None:
    first = merge({}, {}, document(a=before), "cli")
    own = merge(first.object, first.owners, document(a=after), "cli")
    assert repr(own.object) == repr(document(a=after))
    assert merge(first.object, first.owners, document(a=after), "folder").conflicts


def test_a_list_is_one_value() -> None:
    first = merge({}, {}, document(a=[{"n": 1}]), "cli")
    assert merge(first.object, first.owners, document(a=[{"n": 1}, {"n": 2}]), "folder").conflicts


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [({"x": 1}, 3), (3, {"x": 1}), ({"x": {"y": 1}}, {"x": 2}), ({"x": 1}, [1])],
    ids=["mapping to number", "number to mapping", "deeper", "mapping to list"],
)
def test_a_value_in_place_of_anothers_mapping_is_a_conflict_and_force_replaces_it(
    theirs: Any, ours: Any
) -> None:
    first = merge({}, {}, document(a=theirs), "cli")
    contested = merge(first.object, first.owners, document(a=ours), "folder")
    (conflict,) = contested.conflicts
    assert conflict.manager == "cli"
    assert conflict.path in ("/spec/a", "/spec/a/x")
    assert conflict.theirs == get_field(first.object, conflict.path)
    assert conflict.ours == get_field(document(a=ours), conflict.path)
    taken = merge(first.object, first.owners, document(a=ours), "folder", force=True)
    assert taken.object == document(a=ours)
    assert set(taken.owners) == {"folder"}, "nothing of cli's is left"


def test_an_empty_mapping_claims_no_field_inside() -> None:
    first = merge({}, {}, document(a={"x": 1}), "cli")
    both = merge(first.object, first.owners, document(a={}), "folder")
    assert not both.conflicts
    assert both.object == document(a={"x": 1})
    left = merge(both.object, both.owners, document(), "folder")
    assert left.object == document(a={"x": 1})
    emptied = merge(both.object, both.owners, document(), "cli")
    assert emptied.object == document(a={}), "the folder still wants it, empty"


@given(DOCUMENTS, NAMES, NAMES, LEAVES)
def test_a_field_that_was_set_can_be_read_and_removed(
    target: dict[str, Any], first: str, second: str, value: Any
) -> None:
    path = "/spec/" + "/".join(
        part.replace("~", "~0").replace("/", "~1") for part in (first, second)
    )
    set_field(target, path, value)
    assert get_field(target, path) == value
    remove_field(target, path)
    assert get_field(target, path) is None
    remove_field(target, path)
