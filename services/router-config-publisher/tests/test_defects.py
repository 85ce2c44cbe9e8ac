"""Cases of routes and servers by number, and the reference's defects that end here.

Each defect's tests pass as they are and fail on its mutants (`publisher_mutants.py`).
"""

import pytest
from publisher_builders import World, fact, pod, route, route_key, server, server_key, to

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import ConditionStatus

TYPES = {"Accepted", "ResolvedRefs", "Ready"}


def test_t027_of_two_routes_of_a_model_the_older_is_asked_first() -> None:
    old, new = route("old", to("ms1"), second=1), route("new", to("ms7"), second=2)
    world = World(new, old, server("ms1"), server("ms7"))

    assert world.route("old").created_at_ms < world.route("new").created_at_ms
    told = world.condition(route_key("new"), "Conflicted")[2]
    assert "before this one ModelRoute ns/old" in told
    affected = world.apply(old, deleted=True)
    assert route_key("new") in affected.conditions
    assert world.condition(route_key("new"), "Conflicted")[0] == "False"


def test_t028_equal_age_is_settled_by_namespace_and_name() -> None:
    """The reference compares revisions as texts, so that the order changes with every write."""
    world = World(route("b", to("ms7")), route("a", to("ms1")))

    assert "before this one ModelRoute ns/a" in world.condition(route_key("b"), "Conflicted")[2]
    assert "after it ModelRoute ns/b" in world.condition(route_key("a"), "Conflicted")[2]


def test_t029_a_route_without_targets_makes_room_for_the_next() -> None:
    world = World(route("old", {"targetModels": []}, second=1), route("new", second=2), server())

    assert world.route("old").rules == []
    assert world.condition(route_key("old"), "Accepted")[:2] == ("False", "NoActiveRule")
    assert len(world.route("new").rules) == 1
    assert world.condition(route_key("new"), "Accepted")[0] == "True"


def test_t030_a_route_to_a_missing_server_is_published_and_says_so() -> None:
    world = World(route("r", to("missing")))

    assert [one.server for one in world.route().rules[0].targets] == [str(server_key("missing"))]
    status, reason, message = world.condition(route_key(), "ResolvedRefs")
    assert (status, reason) == ("False", "BackendNotFound")
    assert "ModelServer ns/missing does not exist" in message


def test_t102_an_adapter_without_a_name_is_refused_at_its_place() -> None:
    with pytest.raises(ProblemsError) as raised:
        fact(route(loraAdapters=["a", ""]))

    assert [problem.field for problem in raised.value.problems] == ["spec.loraAdapters[1]"]


def test_t103_an_empty_pd_group_is_accepted_and_told_in_three_places() -> None:
    """Refused by the reference; here admission is generous, and the server says what is missing."""
    world = World(
        server(pd_group={"groupKey": "", "prefillLabels": {}, "decodeLabels": {}}),
    )
    world.observe(pod())
    status, _, message = world.condition(server_key(), "Accepted")

    assert status == "True"
    for field in ("groupKey", "prefillLabels", "decodeLabels"):
        assert f"spec.workloadSelector.pdGroup.{field}" in message
    assert world.server().endpoints == []


def test_rt_34_a_pod_that_leaves_every_selector_is_no_endpoint_any_more() -> None:
    """The reference keeps the old binding."""
    world = World(server())
    world.observe(pod(labels={"app": "s"}))
    assert world.addresses() == ["10.0.0.1"]

    affected = world.observe(pod(labels={"app": "moved"}))
    assert affected.parts == {server_key()}
    assert world.addresses() == []


def test_rt_34_a_selector_that_finds_nothing_leaves_nothing() -> None:
    world = World(server())
    world.observe(pod())
    world.apply(server(labels={"app": "other"}))

    assert world.addresses() == []


def test_rt_34_a_pods_new_role_takes_the_place_of_the_old() -> None:
    group = {"groupKey": "g", "prefillLabels": {"r": "p"}, "decodeLabels": {"r": "d"}}
    world = World(server(pd_group=group))
    for role, known in (("p", "prefill"), ("d", "decode")):
        world.observe(pod(labels={"app": "s", "g": "1", "r": role}))
        assert [one.role for one in world.server().endpoints] == [known]


def test_rt_34_one_server_changes_without_a_look_at_the_others() -> None:
    """The reference lists all pods for every event, one event at a time."""
    world = World(server("s"), server("t"))
    world.observe(pod("a", {"app": "s"}), name="w")
    world.observe(pod("b", {"app": "t"}), name="v")

    assert world.observe(pod("a", {"app": "s"}, ready=False), name="w").parts == {server_key("s")}
    assert world.observe(pod("a", {"app": "s"}, ready=False), name="w").parts == frozenset()


def test_rt_35_routes_and_servers_say_what_became_of_them() -> None:
    """The reference writes no status at all."""
    world = World(route(), server())
    world.observe(pod("a"), pod("b", ready=False, address="10.0.0.2"))

    for key in (route_key(), server_key()):
        resolved = world.resolved(key)
        assert {one.type for one in resolved.conditions} >= TYPES
        assert (resolved.endpoints, resolved.ready_endpoints) == (2, 1)
        assert all(
            one.status is ConditionStatus.TRUE for one in resolved.conditions if one.type in TYPES
        )
    world.observe(pod("a", ready=False), pod("b", ready=False, address="10.0.0.2"))
    for key in (route_key(), server_key()):
        assert world.condition(key, "Ready")[0] == "False"
        assert world.resolved(key).ready_endpoints == 0


def test_rt_37_references_and_shared_names_are_checked_whenever_they_change() -> None:
    """The reference's webhook looks at neither."""
    world = World(route("a", second=1))
    assert world.condition(route_key("a"), "ResolvedRefs")[0] == "False"

    affected = world.apply(server())
    assert route_key("a") in affected.conditions
    assert world.condition(route_key("a"), "ResolvedRefs")[0] == "True"

    affected = world.apply(route("b", second=2))
    assert route_key("a") in affected.conditions
    assert world.condition(route_key("a"), "Conflicted")[:2] == ("True", "NameShared")
    assert world.condition(route_key("b"), "Conflicted")[:2] == ("True", "NameShared")
    world.apply(server(), deleted=True)
    assert world.condition(route_key("a"), "ResolvedRefs")[:2] == ("False", "BackendNotFound")


def test_rt_37_of_several_ways_to_match_the_first_counts_and_the_others_are_told() -> None:
    match = {"headers": {"tier": {"exact": "gold", "prefix": "si"}}}
    world = World(route("a", to("s", match=match)), server())
    read = world.route("a").rules[0].match

    assert read is not None
    assert (read.headers["tier"].exact, read.headers["tier"].prefix) == ("gold", None)
    assert "headers" in world.condition(route_key("a"), "Accepted")[2]
