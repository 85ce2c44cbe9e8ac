"""Where replicas stand, and that a policy's number outlives every apply of the manifest."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_spec_watcher.policy_replicas import keeping_replicas, replicas, with_replicas

COUNTS = st.integers(0, 50)
ROLES = st.dictionaries(st.sampled_from(["prefill", "decode", "main"]), COUNTS, max_size=3)


def serving(count: int | None, roles: dict[str, int]) -> dict[str, Any]:
    listed = [{"name": name, "replicas": number} for name, number in roles.items()]
    spec: dict[str, Any] = {"template": {"roles": listed}}
    return {"spec": spec if count is None else spec | {"replicas": count}}


@given(COUNTS, ROLES, COUNTS)
def test_what_was_set_is_read_and_nothing_else_changes(
    count: int, roles: dict[str, int], number: int
) -> None:
    document = serving(count, roles)
    before = copy.deepcopy(document)
    for role in ("", *roles):
        changed = with_replicas(document, role, number)
        assert replicas(changed, role) == number
        assert document == before
        assert with_replicas(changed, role, replicas(document, role)) == document
        for other in {"", *roles} - {role}:
            assert replicas(changed, other) == replicas(document, other)


def test_replicas_that_are_not_given_are_one() -> None:
    assert replicas({}) == 1
    assert replicas(serving(None, {})) == 1
    assert replicas({"spec": {"template": {"roles": [{"name": "main"}]}}}, "main") == 1
    assert with_replicas({}, "", 3) == {"spec": {"replicas": 3}}


def test_a_role_that_is_not_there_is_told() -> None:
    with pytest.raises(KeyError):
        replicas(serving(1, {"main": 1}), "none")
    with pytest.raises(KeyError):
        with_replicas(serving(1, {"main": 1}), "none", 2)


@given(COUNTS, ROLES, COUNTS, ROLES, st.sets(st.sampled_from(["", "prefill", "decode", "main"])))
def test_a_policy_keeps_its_numbers_and_the_manifest_all_others(
    wanted: int, wanted_roles: dict[str, int], now: int, now_roles: dict[str, int], scaled: set[str]
) -> None:
    document, stored = serving(wanted, wanted_roles), serving(now, now_roles)
    kept = keeping_replicas(document, stored, scaled)
    for role in ("", *wanted_roles):
        owned = role in scaled and role in ("", *now_roles)
        assert replicas(kept, role) == replicas(stored if owned else document, role)
    assert {role["name"] for role in kept["spec"]["template"]["roles"]} == set(wanted_roles)
    assert keeping_replicas(kept, stored, scaled) == kept
