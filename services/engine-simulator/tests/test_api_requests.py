"""Parsing OpenAI bodies: what is accepted, what is refused, how long answers get."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_engine_simulator.policy_api_errors import ApiError
from inferbus_engine_simulator.policy_api_requests import (
    chat_tokens,
    parse_chat,
    parse_completion,
)
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_events import FinishReason

MAX_LEN = 1000


def completion(**fields: Any) -> Any:
    return parse_completion({"prompt": "a" * 40, **fields}, MAX_LEN, 0)


def test_prompts_may_be_texts_or_token_ids() -> None:
    assert completion(prompt="abcdefgh").prompts[0] == completion(prompt=["abcdefgh"]).prompts[0]
    assert completion(prompt=[1, 2, 3]).prompts == ((1, 2, 3),)
    assert completion(prompt=[[1, 2], [3]]).prompts == ((1, 2), (3,))
    assert len(completion(prompt=["a", "b"], n=3).outputs) == 6


def test_choices_of_one_prompt_differ() -> None:
    seeds = {output.seed for output in completion(n=4).outputs}

    assert len(seeds) == 4


def test_a_limit_is_the_length() -> None:
    (output,) = completion(max_tokens=7).outputs

    assert (output.tokens, output.reason) == (7, FinishReason.LENGTH)
    assert (
        parse_chat(
            {"messages": [{"role": "user", "content": "x"}], "max_completion_tokens": 9}, MAX_LEN, 0
        )
        .outputs[0]
        .tokens
        == 9
    )


def test_without_a_limit_the_model_stops_by_itself_always_at_the_same_length() -> None:
    (output,) = completion(prompt="tell me").outputs

    assert output.reason is FinishReason.STOP
    assert completion(prompt="tell me").outputs == (output,)
    assert len({completion(prompt=f"tell {i}").outputs[0].tokens for i in range(20)}) > 5


def test_min_tokens_and_ignore_eos_make_answers_longer() -> None:
    assert completion(min_tokens=950).outputs[0].tokens >= 950
    (endless,) = completion(ignore_eos=True).outputs
    assert (endless.tokens, endless.reason) == (MAX_LEN - 10, FinishReason.LENGTH)


@settings(deadline=None)
@given(st.integers(1, 1200), st.one_of(st.none(), st.integers(1, 1200)), st.booleans())
def test_what_is_accepted_fits_into_the_context(
    prompt: int, limit: int | None, ignore_eos: bool
) -> None:
    body = {"prompt": [7] * prompt, "max_tokens": limit, "ignore_eos": ignore_eos}
    if prompt + (limit or 1) > MAX_LEN:
        with pytest.raises(ApiError, match=f"the context holds {MAX_LEN} tokens"):
            parse_completion(body, MAX_LEN, 0)
    else:
        (output,) = parse_completion(body, MAX_LEN, 0).outputs
        assert 1 <= output.tokens <= MAX_LEN - prompt


def test_a_conversation_keeps_its_tokens_when_it_goes_on() -> None:
    first = [{"role": "user", "content": "what is a token?"}]
    second = [
        *first,
        {"role": "assistant", "content": "four bytes"},
        {"role": "user", "content": "?"},
    ]
    opening = chat_tokens(first)

    assert chat_tokens(second)[: len(opening)] == opening


def test_parts_of_a_message_are_counted() -> None:
    text = [{"type": "text", "text": "look at this"}]
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    plain = chat_tokens([{"role": "user", "content": text}])

    assert plain == chat_tokens([{"role": "user", "content": "look at this"}])
    assert len(chat_tokens([{"role": "user", "content": [*text, image]}])) > len(plain) + 200


def test_disaggregated_requests_are_recognised() -> None:
    assert completion(kv_transfer_params={"do_remote_decode": True}).asks_for_prefill
    assert completion(kv_transfer_params={"do_remote_prefill": True}).names_blocks
    assert not completion(kv_transfer_params={"do_remote_decode": True}).names_blocks
    room = completion(bootstrap_room=2**62, bootstrap_host="10.0.0.1")
    assert (room.rooms, room.bootstrap_host, room.bootstrap_port) == ((2**62,), "10.0.0.1", None)


def test_each_prompt_of_a_batch_has_a_room() -> None:
    call = completion(
        prompt=["a", "b"],
        bootstrap_room=[1, 2],
        bootstrap_host=["10.0.0.1"] * 2,
        bootstrap_port=[9000] * 2,
    )

    assert (call.rooms, call.bootstrap_host, call.bootstrap_port) == ((1, 2), "10.0.0.1", 9000)


REFUSED: list[tuple[Any, str | None]] = [
    ([], None),
    ("text", None),
    ({}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [1, -2]}, "prompt"),
    ({"prompt": [True]}, "prompt"),
    ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
    ({"prompt": "a", "max_tokens": "9"}, "max_tokens"),
    ({"prompt": "a", "max_tokens": 2000}, None),
    ({"prompt": "a", "n": 1000}, "n"),
    ({"prompt": "a", "n": True}, "n"),
    ({"prompt": "a", "max_tokens": 5, "min_tokens": 6}, "min_tokens"),
    ({"prompt": "a", "model": 3}, "model"),
    ({"prompt": "a", "stream_options": "usage"}, "stream_options"),
    ({"prompt": "a", "kv_transfer_params": []}, "kv_transfer_params"),
]


@pytest.mark.parametrize(("body", "parameter"), REFUSED, ids=str)
def test_what_can_not_be_served_is_refused_with_the_parameter(
    body: Any, parameter: str | None
) -> None:
    with pytest.raises(ApiError) as caught:
        parse_completion(body, MAX_LEN, 0)

    assert (caught.value.status, caught.value.parameter) == (400, parameter)


@pytest.mark.parametrize(
    "messages",
    [None, [], "hi", [{}], [{"role": "user", "content": 3}], [{"role": "u", "content": [3]}]],
)
def test_broken_conversations_are_refused(messages: Any) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat({"messages": messages}, MAX_LEN, 0)

    assert caught.value.parameter == "messages"


def test_errors_have_the_shape_of_the_engine() -> None:
    error = ApiError(404, "NotFoundError", "no such model", "model")
    fields = {"message": "no such model", "type": "NotFoundError", "param": "model", "code": 404}

    assert error.body(EngineKind.VLLM) == {"error": fields}
    assert error.body(EngineKind.SGLANG) == {"object": "error", **fields}
    assert error.body(EngineKind.LLAMACPP)["error"]["type"] == "not_found_error"
