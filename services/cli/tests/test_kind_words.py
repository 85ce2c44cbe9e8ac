"""Kinds and objects as people write them."""

import pytest

from inferbus_cli.kind_words import keys_named, kind_named, kinds_named, name_of
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey


@pytest.mark.parametrize(
    ("word", "token"),
    [
        ("modelserving", "ModelServing"),
        ("ModelServings", "ModelServing"),
        ("model-servings", "ModelServing"),
        ("ms", "ModelServing"),
        ("po", "Pod"),
        ("modelroutes.networking.serving.volcano.sh", "ModelRoute"),
        ("service", "Service"),
        ("svc", "CoreService"),
        ("aspb", "AutoscalingPolicyBinding"),
        ("cm", "ConfigMap"),
    ],
)
def test_a_kind_has_many_names(word: str, token: str) -> None:
    assert kind_named(word).token == token


def test_an_unknown_kind_is_told_with_the_nearest() -> None:
    with pytest.raises(ProblemsError) as told:
        kind_named("modelruote")
    (problem,) = told.value.problems
    assert problem.code is ErrorCode.UNKNOWN_KIND
    assert problem.value == "modelruote"
    assert problem.remedy.startswith("did you mean modelroute?")


def test_several_kinds_are_separated_by_commas() -> None:
    assert [kind.token for kind in kinds_named("po,ms,pods")] == ["Pod", "ModelServing"]


def test_all_leaves_out_what_only_supports() -> None:
    tokens = [kind.token for kind in kinds_named("all")]
    assert {"ModelServing", "Playground", "Pod", "ModelRoute"} <= set(tokens)
    assert not {"ConfigMap", "Secret", "ControllerRevision"} & set(tokens)
    assert [kind.token for kind in kinds_named("all,secrets")] == [*tokens, "Secret"]


def test_objects_are_named_in_two_ways() -> None:
    first, second = ObjectKey("Pod", "default", "a"), ObjectKey("Pod", "default", "b")
    assert keys_named(["pod", "a", "b"], None) == [first, second]
    assert keys_named(["pod/a", "po/b"], None) == [first, second]
    assert keys_named(["pod/a"], "team") == [ObjectKey("Pod", "team", "a")]
    assert keys_named(["pod/team/a"], None) == [ObjectKey("Pod", "team", "a")]
    assert keys_named(["om", "qwen"], "team") == [ObjectKey("OpenModel", "_", "qwen")]


def test_the_namespace_is_told_where_it_isnt_the_default_one() -> None:
    assert name_of(ObjectKey("ModelServing", "default", "m", "prefill")) == "modelserving/m/prefill"
    assert name_of(ObjectKey("Pod", "team", "p")) == "pod/p (namespace team)"
    assert name_of(ObjectKey("OpenModel", "_", "q")) == "openmodel/q"
