"""What routers get of a ModelRoute, and what it is told about itself."""

from typing import Any

import pytest
from publisher_builders import (
    LLMAZ,
    WORKLOAD,
    Document,
    Fact,
    World,
    created,
    document,
    fact,
    owner,
    pod,
    route,
    route_key,
    server,
    server_key,
    to,
)

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.events.route import (
    MatchRule,
    RouteEntry,
    RuleEntry,
    StringRule,
    TargetShare,
    TokenLimit,
)
from inferbus_contracts.resources.networking import RateLimit
from inferbus_router_config_publisher.policy_access import authentication, token_limit


def test_a_route_with_everything_set() -> None:
    match = {
        "headers": {"User-Type": {"exact": "premium"}},
        "uri": {"prefix": "/v1/"},
        "body": {"model": "m"},
    }
    world = World(
        route(
            "r",
            to("a", "b", weights=(70, 30), match=match) | {"name": "premium"},
            to("b"),
            second=3,
            loraAdapters=["x", "y", "x"],
            rateLimit={
                "inputTokensPerUnit": 10,
                "unit": "minute",
                "global": {"redis": {"address": "redis:6379"}},
            },
        )
    )
    assert world.route() == RouteEntry(
        model_name="m",
        adapters=["x", "y"],
        created_at_ms=parse_time(created(3)),
        rules=[
            RuleEntry(
                name="premium",
                match=MatchRule(
                    headers={"user-type": StringRule(exact="premium")},
                    uri=StringRule(prefix="/v1/"),
                    model="m",
                ),
                targets=[
                    TargetShare(server="ModelServer/ns/a", weight=70),
                    TargetShare(server="ModelServer/ns/b", weight=30),
                ],
            ),
            RuleEntry(targets=[TargetShare(server="ModelServer/ns/b")]),
        ],
        limit=TokenLimit(input_tokens=10, unit_seconds=60, redis="redis:6379"),
    )


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400), ("month", 2_592_000)],
)
def test_units_of_the_rate_limit(unit: str, seconds: int) -> None:
    limit = World(route(rateLimit={"outputTokensPerUnit": 5, "unit": unit})).route().limit
    assert limit == TokenLimit(output_tokens=5, unit_seconds=seconds)


@pytest.mark.parametrize(
    ("text", "per"),
    [
        (None, None),
        ("name,principal", ["name", "principal"]),
        ("principal", ["principal"]),
        ("route", []),
    ],
)
def test_what_the_rate_limit_holds_for(text: str | None, per: list[str] | None) -> None:
    annotations = {} if text is None else {"inferbus.dev/rate-limit-per": text}
    rate_limit = {"inputTokensPerUnit": 5, "unit": "day"}
    world = World(route(annotations=annotations, rateLimit=rate_limit))
    assert world.route().limit == TokenLimit(input_tokens=5, unit_seconds=86_400, per=per)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("none", "none"), ("required", "required")],
)
def test_whom_a_route_serves(text: str | None, expected: str | None) -> None:
    annotations = {} if text is None else {"inferbus.dev/authentication": text}
    assert World(route(annotations=annotations)).route().authentication == expected


def test_a_word_of_a_newer_release_makes_nothing_wider() -> None:
    """Admission of this release refuses it; objects may have been admitted by another."""
    limit = RateLimit(inputTokensPerUnit=5, unit="day")
    read = token_limit(limit, {"inferbus.dev/rate-limit-per": "team"})

    assert read is not None
    assert read.per == []
    assert authentication({"inferbus.dev/authentication": "mutual"}) == "required"


def test_a_rate_limit_without_a_number_limits_nothing() -> None:
    assert World(route(rateLimit={"unit": "day"})).route().limit is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ({"exact": "", "regex": "x"}, StringRule(exact="")),
        ({"prefix": "p", "regex": "x"}, StringRule(prefix="p")),
        ({"regex": "^gold"}, StringRule(regex="^gold")),
        ({}, StringRule()),
    ],
)
def test_exact_counts_before_prefix_before_regex(text: Document, rule: StringRule) -> None:
    match = World(route("r", to("s", match={"uri": text}))).route().rules[0].match
    assert match == MatchRule(uri=rule)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (to("s", weights=(0,)), "weights sum to 0"),
        (to("s", match={"uri": {"regex": "["}}), "doesn't compile"),
        (to("s", match={"headers": {"x": {"regex": "("}}}), "doesn't compile"),
        (to(), "is empty"),
    ],
)
def test_a_rule_that_cannot_be_used_leaves_the_others_in_force(rule: Document, why: str) -> None:
    """Ruling 4 of precedence; routing spec 8.1 (29)."""
    world = World(route("r", rule, to("t") | {"name": "rest"}))
    assert [entry.name for entry in world.route().rules] == ["rest"]
    status, reason, message = world.condition(route_key(), "Accepted")
    assert (status, reason) == ("True", "AcceptedWithDoubts")
    assert why in message
    assert "rules[0] is not in force" in message


def test_a_route_without_an_active_rule_is_not_accepted() -> None:
    world = World(route("r", to("s", weights=(0,))))
    assert world.route().rules == []
    assert world.condition(route_key(), "Accepted")[:2] == ("False", "NoActiveRule")
    assert world.condition(route_key(), "Ready")[:2] == ("False", "NotAccepted")


def test_targets_that_lead_nowhere_are_left_out_and_named() -> None:
    world = World(route("r", to("a/b", "s")), server())
    (rule,) = world.route().rules
    assert [target.server for target in rule.targets] == ["ModelServer/ns/s"]
    status, reason, message = world.condition(route_key(), "ResolvedRefs")
    assert (status, reason) == ("False", "UnsupportedBackend")
    assert "'a/b'" in message


def test_every_missing_server_is_named() -> None:
    world = World(route("r", to("a", "b"), to("s", "a")), server())
    status, reason, message = world.condition(route_key(), "ResolvedRefs")
    assert (status, reason) == ("False", "BackendNotFound")
    assert message == "ModelServer ns/a does not exist; ModelServer ns/b does not exist"
    before = world.route()
    for name in ("a", "b"):
        assert route_key() in world.apply(server(name)).conditions
    assert world.condition(route_key(), "ResolvedRefs")[:2] == ("True", "ResolvedRefs")
    assert world.route() == before, "routers know the name of the server already"


def test_a_server_that_a_route_no_longer_names_concerns_it_no_longer() -> None:
    world = World(route("r", to("s")))
    world.apply(route("r", to("t")))
    assert world.apply(server("s")).conditions == {server_key("s")}
    assert world.apply(server("t")).conditions == {server_key("t"), route_key()}


def test_a_route_is_ready_when_all_its_rules_can_be_served() -> None:
    world = World(
        route("r", to("s", match={"body": {"model": "m"}}) | {"name": "first"}, to("s", "t")),
        server("s"),
        server("t"),
    )
    assert world.condition(route_key(), "Ready")[:2] == ("False", "NoReadyEndpoint")
    affected = world.observe(pod("p", {"app": "t"}))
    assert route_key() in affected.conditions
    assert route_key() not in affected.parts
    status, reason, message = world.condition(route_key(), "Ready")
    assert (status, reason) == ("False", "SomeRulesNotReady")
    assert message == 'no target of rule "first" can serve; 1 of 1 endpoints ready'
    world.observe(pod("p", {"app": "t"}), pod("q", {"app": "s"}))
    assert world.condition(route_key(), "Ready")[0] == "True"
    resolved = world.resolved(route_key())
    assert (resolved.endpoints, resolved.ready_endpoints) == (2, 2)


def test_a_target_without_weight_makes_no_rule_ready() -> None:
    world = World(route("r", to("s", "t", weights=(100, 0))), server("s"), server("t"))
    world.observe(pod("p", {"app": "t"}))
    assert world.condition(route_key(), "Ready")[0] == "False"


def test_a_parent_that_is_not_there_is_told() -> None:
    world = World(route(parentRefs=[{"name": "gateway"}]), server())
    assert world.route().rules
    status, _, message = world.condition(route_key(), "Accepted")
    assert status == "True"
    assert "parentRefs" in message


def test_a_header_that_is_given_twice_is_doubted() -> None:
    match = {"headers": {"X-A": {"exact": "1"}, "x-a": {"exact": "2"}}}
    world = World(route("r", to("s", match=match)))
    assert "x-a is given twice" in world.condition(route_key(), "Accepted")[2]


def test_conditions_tell_generation_and_uid() -> None:
    world = World()
    world.apply(route(), generation=7)
    resolved = world.resolved(route_key())
    assert (resolved.uid, resolved.generation) == ("uid-r", 7)
    assert [one.type for one in resolved.conditions] == [
        "Accepted",
        "ResolvedRefs",
        "Ready",
        "Conflicted",
    ]


# Where a route comes from.


def booster(name: str = "b", **spec: Any) -> Document:
    backend = {
        "name": "x",
        "type": "vLLM",
        "modelURI": "hf://a/b",
        "cacheURI": "hostpath:///c",
        "minReplicas": 1,
        "maxReplicas": 1,
        "workers": [
            {
                "type": "server",
                "image": "vllm:1",
                "replicas": 1,
                "pods": 1,
                "resources": {"limits": {"cpu": "1"}},
                "config": {},
            }
        ],
    }
    return document(WORKLOAD, "ModelBooster", name, {"backends": [backend]} | spec)


def open_model(name: str = "model", **spec: Any) -> Document:
    body = {"familyName": "f", "source": {"modelHub": {"modelID": "a/b"}}} | spec
    return document("llmaz.io/v1alpha1", "OpenModel", name, body)


def playground(name: str = "pl", model: str = "model") -> Document:
    return document(LLMAZ, "Playground", name, {"modelClaim": {"modelName": model}})


def inference_service(name: str = "isvc", model: str = "model") -> Document:
    template = {"spec": {"containers": [{"name": "model-runner", "image": "x"}]}}
    claims = {"models": [{"name": "draft", "role": "draft"}, {"name": model}]}
    spec = {"modelClaims": claims, "workloadTemplate": {"workerTemplate": template}}
    return document(LLMAZ, "Service", name, spec)


def test_the_owner_of_a_booster_owns_its_model() -> None:
    by_booster = [owner(WORKLOAD, "ModelBooster", "b")]
    world = World(route(owners=by_booster))
    assert world.route().owned_by == ""
    assert world.apply(booster(owner="team-a")).parts == {route_key()}
    assert world.route().owned_by == "team-a"


@pytest.mark.parametrize(
    ("made_from", "kind"), [(playground(), "Playground"), (inference_service(), "Service")]
)
def test_an_open_model_tells_owner_and_age(made_from: Document, kind: str) -> None:
    name = made_from["metadata"]["name"]
    world = World(route(owners=[owner(LLMAZ, kind, name)], second=9), made_from)
    assert world.route().created_at_ms == parse_time(created(9))
    world.apply(open_model(ownedBy="lab", createdAt=created(2)))
    entry = world.route()
    assert (entry.owned_by, entry.created_at_ms) == ("lab", parse_time(created(2)))
    world.apply(open_model(), deleted=True)
    assert world.route().owned_by == ""


def test_what_the_expander_wrote_onto_the_route_counts_first() -> None:
    written = {"inferbus.dev/owned-by": "acme", "inferbus.dev/created-at": created(1)}
    made = route(owners=[owner(LLMAZ, "Playground", "pl")], second=9)
    made["metadata"]["annotations"] = written
    world = World(playground(), open_model(ownedBy="lab", createdAt=created(2)), made)
    entry = world.route()
    assert (entry.owned_by, entry.created_at_ms) == ("acme", parse_time(created(1)))


@pytest.mark.parametrize(
    ("kind", "written"), [("Playground", "yesterday"), ("Deployment", created(1))]
)
def test_an_age_that_means_nothing_is_passed_over(kind: str, written: str) -> None:
    """A time that can't be read, and one on a route that nobody expanded."""
    made = route(owners=[owner(LLMAZ, kind, "pl")], second=9)
    made["metadata"]["annotations"] = {"inferbus.dev/created-at": written}
    assert World(made).route().created_at_ms == parse_time(created(9))


def test_a_route_that_was_made_by_hand_names_no_owner() -> None:
    assert World(route()).route().owned_by == ""


# Routes that share a name.


def test_routes_that_share_a_name_all_stay_and_say_so() -> None:
    """Routing spec 2.3 and 9.2 (37)."""
    world = World(route("new", second=5), route("old", second=1), route("mid", second=3))
    assert all(world.route(name).rules for name in ("new", "old", "mid"))
    status, reason, message = world.condition(route_key("mid"), "Conflicted")
    assert (status, reason) == ("True", "NameShared")
    assert message == (
        "model name 'm' is shared; its requests are offered before this one "
        "ModelRoute ns/old, after it ModelRoute ns/new"
    )
    affected = world.apply(route("old"), deleted=True)
    assert route_key("mid") in affected.conditions
    assert "before" not in world.condition(route_key("mid"), "Conflicted")[2]


def test_equal_age_is_settled_by_name() -> None:
    world = World(route("b"), route("a"))
    assert "before this one ModelRoute ns/a" in world.condition(route_key("b"), "Conflicted")[2]


def test_an_adapter_that_is_a_model_name_elsewhere_gets_no_requests() -> None:
    world = World(route("a", model="base", loraAdapters=["m"]), route("b"))
    message = world.condition(route_key("a"), "Conflicted")[2]
    assert (
        message
        == "adapter 'm' is the model name of ModelRoute ns/b, which gets its requests instead"
    )
    assert world.condition(route_key("b"), "Conflicted")[:2] == ("False", "NoConflicts")


def test_a_model_that_turns_out_older_moves_its_route_before_the_others() -> None:
    made = route("made", owners=[owner(WORKLOAD, "Other", "x"), by_service()], second=9)
    world = World(made, inference_service(), route("old", second=5, namespace="elsewhere"))
    old = route_key("old", "elsewhere")
    assert "after it ModelRoute ns/made" in world.condition(old, "Conflicted")[2]
    affected = world.apply(open_model(createdAt=created(1)))
    assert affected.parts == {route_key("made")}
    assert affected.conditions == {route_key("made"), old}
    assert "before this one ModelRoute ns/made" in world.condition(old, "Conflicted")[2]


def by_service() -> Document:
    return owner(LLMAZ, "Service", "isvc")


def test_many_routes_of_one_name_are_counted() -> None:
    world = World(*(route(f"r{index}", second=index) for index in range(6)))
    assert "ns/r2 and 2 more" in world.condition(route_key("r5"), "Conflicted")[2]


def generated(second: int = 0, **fields: Any) -> Document:
    return route("made", owners=[owner(LLMAZ, "Playground", "pl")], second=second, **fields)


def test_a_route_made_by_hand_takes_the_place_of_one_expanded_from_a_playground() -> None:
    """Ruling "routing" of llmaz: the user's own route wins, however young it is."""
    world = World(generated(), playground())
    affected = world.apply(route("own", second=30))
    assert route_key("made") in affected.parts
    assert world.join.part(route_key("made")) is None
    assert world.route("own").rules
    status, reason, message = world.condition(route_key("made"), "Accepted")
    assert (status, reason) == ("False", "ReplacedByOwnRoute")
    assert "ModelRoute ns/own" in message
    assert world.condition(route_key("made"), "Ready")[:2] == ("False", "NotAccepted")
    assert world.condition(route_key("own"), "Conflicted")[:2] == ("False", "NoConflicts")
    assert route_key("made") in world.apply(route("own"), deleted=True).parts
    assert world.route("made").rules


def test_a_replaced_route_lets_go_of_its_adapters() -> None:
    world = World(generated(loraAdapters=["a"]), route("b", model="other", loraAdapters=["a"]))
    assert world.condition(route_key("b"), "Conflicted")[0] == "True"
    assert route_key("b") in world.apply(route("own")).conditions
    assert world.condition(route_key("b"), "Conflicted")[0] == "False"


def test_nobody_takes_over_the_model_of_another_namespace() -> None:
    world = World(generated(), route("own", namespace="elsewhere"))
    assert world.route("made").rules
    assert world.condition(route_key("made"), "Conflicted")[0] == "True"


def test_a_route_expanded_from_a_booster_keeps_its_place() -> None:
    made = route("made", owners=[owner(WORKLOAD, "ModelBooster", "b")])
    world = World(made, route("own", second=4))
    assert world.route("made").rules
    assert world.route("own").rules


# Objects of a form that isn't known.


def test_an_object_that_cannot_be_read_is_told_and_settles_nothing() -> None:
    world = World(route())
    key, data = with_spec(route(), {"rules": "many"})
    world.join.fold_object(key, data)
    status, reason, message = world.condition(key, "Accepted")
    assert (status, reason) == ("False", "Invalid")
    assert "spec.rules" in message
    assert not world.join.is_settled(key)


def with_spec(doc: Document, spec: Document) -> Fact:
    key, data = fact(doc)
    return key, data.model_copy(update={"object": data.object | {"spec": spec}})


def test_what_was_never_heard_of_is_not_settled_and_what_was_deleted_is() -> None:
    world = World()
    assert not world.join.is_settled(route_key())
    world.apply(route())
    assert world.join.is_settled(route_key())
    world.apply(route(), deleted=True)
    assert world.join.is_settled(route_key())
    assert world.join.part(route_key()) is None
    assert world.join.resolved(route_key()) is None
