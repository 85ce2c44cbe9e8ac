"""What a word on a command line means, and what may be frozen."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_console.policy_names import resolve
from inferbus_console.policy_scopes import scope_of
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey

CHAT = ObjectKey("ModelServing", "default", "chat")
PREFILL, DECODE = CHAT._replace(role="prefill"), CHAT._replace(role="decode")
OTHER = ObjectKey("ModelServing", "team", "chat")
POLICY = ObjectKey("AutoscalingPolicy", "default", "scale")
KNOWN = (CHAT, PREFILL, DECODE, POLICY)


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("chat", CHAT),
        ("modelservings/chat", CHAT),
        ("MODELSERVING/default/chat", CHAT),
        ("ModelServing/default/chat/decode", DECODE),
        ("chat/prefill", PREFILL),
        ("scale", POLICY),
    ],
)
def test_a_word_means_one_object(word: str, key: ObjectKey) -> None:
    assert resolve(word, KNOWN) == key


def refusal(word: str, known: Collection[ObjectKey]) -> tuple[ErrorCode, str]:
    with pytest.raises(ProblemsError) as told:
        resolve(word, known)
    (problem,) = told.value.problems
    assert problem.value == word
    return problem.code, f"{problem.message}; {problem.remedy}"


def test_a_word_that_means_several_is_refused_with_all_of_them() -> None:
    code, said = refusal("chat", (CHAT, OTHER))
    assert code is ErrorCode.BAD_ARGUMENT
    assert "ModelServing/default/chat, ModelServing/team/chat" in said
    assert resolve("ModelServing/team/chat", (CHAT, OTHER)) == OTHER


def test_things_that_mean_the_same_are_one() -> None:
    namesake = POLICY._replace(name="chat")
    assert resolve("chat", (CHAT, namesake), meaning=lambda _: "the same") == CHAT
    with pytest.raises(ProblemsError):
        resolve("chat", (CHAT, namesake))


@pytest.mark.parametrize("word", ["", "/", "a//b", "a/b/c/d/e", "chat/nothing", "pod/chat"])
def test_a_word_that_means_nothing_is_refused(word: str) -> None:
    assert refusal(word, KNOWN)[0] is ErrorCode.NOT_FOUND


def test_the_nearest_is_told() -> None:
    assert "did you mean ModelServing/default/chat?" in refusal("chta", KNOWN)[1]
    assert "nothing is known here yet" in refusal("chat", ())[1]


@given(st.sets(st.tuples(st.sampled_from("AB"), st.sampled_from("xy"), st.sampled_from("mn"))))
def test_a_whole_key_always_means_itself(parts: set[tuple[str, str, str]]) -> None:
    known = [ObjectKey(*part) for part in parts]
    for key in known:
        assert resolve(str(key), known) == key


def test_scopes_are_the_platform_a_namespace_or_a_target() -> None:
    def target(word: str) -> ObjectKey:
        return resolve(word, KNOWN)

    assert str(scope_of("Platform/_/all", target, {"default"})) == "Platform/_/all"
    assert str(scope_of("Namespace/_/default", target, {"default"})) == "Namespace/_/default"
    assert scope_of("chat/decode", target, {"default"}) == DECODE
    with pytest.raises(ProblemsError, match="namespaces with objects: default"):
        scope_of("Namespace/_/defualt", target, {"default"})
    with pytest.raises(ProblemsError, match="nothing of that name"):
        scope_of("everything", target, {"default"})
