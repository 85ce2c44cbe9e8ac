"""Routes, adapters and mixes of a ModelBooster with one or several backends (spec 2.12, 2.13)."""

from typing import Any

from expansion_builders import backend, booster
from expansion_store import Document, Store, child, conditions, kinds

from inferbus_spec_watcher.expansion import Expansion

POLICY = {"metrics": [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]}
MATCH = {"headers": {"x-tier": {"exact": "gold"}}}


def expanded(*backends: Document, **fields: Any) -> Expansion:
    return Store(booster(*backends, **fields)).expand("ModelBooster", "chat", "llm")


def adapters(*names: str) -> list[Document]:
    return [{"name": name, "artifactURL": f"hf://org/{name}"} for name in names]


def test_one_backend_takes_the_match_as_it_is() -> None:
    spec = child(expanded(backend(), modelMatch=MATCH), "ModelRoute")["spec"]
    assert spec["rules"] == [
        {
            "name": "default",
            "modelMatch": MATCH,
            "targetModels": [{"modelServerName": "chat-main", "weight": 100}],
        }
    ]


def test_one_backend_answers_for_its_adapters_too() -> None:
    spec = child(expanded(backend(loraAdapters=adapters("b", "a"))), "ModelRoute")["spec"]
    assert spec["loraAdapters"] == ["a", "b"]
    assert "modelMatch" not in spec["rules"][0]
    assert len(spec["rules"]) == 1


def test_several_backends_share_the_model_and_only_owners_get_an_adapter() -> None:
    result = expanded(
        backend(name="a", routeWeight=30, loraAdapters=adapters("z", "shared")),
        backend(name="b", routeWeight=70, loraAdapters=adapters("shared")),
        client_name="gpt",
        modelMatch=MATCH,
    )
    spec = child(result, "ModelRoute")["spec"]
    both = [
        {"modelServerName": "chat-a", "weight": 30},
        {"modelServerName": "chat-b", "weight": 70},
    ]
    assert spec["modelName"] == "gpt"
    assert spec["loraAdapters"] == ["shared", "z"]
    assert spec["rules"] == [
        {
            "name": "default",
            "modelMatch": {**MATCH, "body": {"model": "gpt"}},
            "targetModels": both,
        },
        {"name": "shared", "modelMatch": {"body": {"model": "shared"}}, "targetModels": both},
        {"name": "z", "modelMatch": {"body": {"model": "z"}}, "targetModels": both[:1]},
    ]


def test_a_mix_has_one_policy_over_all_backends_with_their_costs() -> None:
    result = expanded(
        backend(name="a", maxReplicas=4, scalingCost=3),
        backend(name="b", minReplicas=0, maxReplicas=9, scalingCost=1),
        autoscalingPolicy=POLICY,
        costExpansionRatePercent=120,
    )
    assert kinds(result).count("AutoscalingPolicy") == 1
    spec = child(result, "AutoscalingPolicyBinding", "chat")["spec"]
    assert spec["policyRef"] == {"name": "chat"}
    assert "scalingConfiguration" not in spec
    mix = spec["optimizerConfiguration"]
    assert mix["costExpansionRatePercent"] == 120
    found = [
        (one["target"]["targetRef"]["name"], one["minReplicas"], one["maxReplicas"], one["cost"])
        for one in mix["params"]
    ]
    assert found == [("chat-a", 1, 4, 3), ("chat-b", 0, 9, 1)]


def test_only_backends_with_a_policy_of_their_own_are_scaled() -> None:
    result = expanded(backend(name="a", maxReplicas=4, autoscalingPolicy=POLICY), backend(name="b"))
    names = [one["metadata"]["name"] for one in result.children if "Policy" in one["kind"]]
    assert names == ["chat-a", "chat-a"]


def test_the_later_form_of_one_backend_is_the_same() -> None:
    single = booster(backend())
    single["spec"]["backend"] = single["spec"].pop("backends")[0]
    later = Store(single).expand("ModelBooster", "chat", "llm")
    assert later.children == expanded(backend()).children


def test_a_foreign_object_stays_and_the_rest_is_made() -> None:
    store = Store(booster(backend()))
    own = child(store.expand("ModelBooster", "chat", "llm"), "ModelRoute")
    store.put(own)
    result = store.expand("ModelBooster", "chat", "llm")
    assert kinds(result) == ["ModelServing", "ModelServer"]
    assert conditions(result)["RouteTaken"] == ("True", "RouteTaken")
    assert not result.blocked


def test_nothing_is_rendered_when_a_child_could_not_be_stored() -> None:
    result = expanded(*(backend(name=f"b{number}") for number in range(17)))
    assert result.blocked
    assert result.children == ()
    assert conditions(result) == {
        "Expanded": ("False", "ChildRefused"),
        "Failed": ("True", "ModelAbnormal"),
    }
    assert "spec.rules[0].targetModels" in result.conditions[0].message
