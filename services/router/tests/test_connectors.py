"""What prefill and decode endpoints are sent, by connector (routing spec 4.3)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.route import ServerEntry
from inferbus_router.json_members import JsonMembers
from inferbus_router.policy_connectors import (
    Connector,
    Room,
    bodies_of,
    connector_of,
    disaggregation_of,
    http_bodies,
    nixl_bodies,
    sglang_bodies,
    transfer_in,
    with_transfer,
)
from services.router.tests.builders import endpoint, server

ROOM = Room(2**63 - 1, "10.0.0.1", None)


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": "hello"} | fields).encode()


def both(bodies: tuple[bytes, bytes]) -> tuple[Any, Any]:
    prefill, decode = bodies
    return json.loads(prefill), json.loads(decode)


def test_t067_http_prefill_computes_one_token_and_decode_gets_the_whole_request() -> None:
    raw = body(
        max_tokens=100,
        max_completion_tokens=50,
        stream=True,
        stream_options={"include_usage": True},
    )
    prefill, decode = both(http_bodies(JsonMembers(raw)))

    assert prefill == {
        "model": "m",
        "prompt": "hello",
        "max_tokens": 1,
        "max_completion_tokens": 1,
    }
    assert decode == json.loads(raw)


def test_max_tokens_is_set_where_only_the_newer_limit_was_given() -> None:
    prefill, _ = both(http_bodies(JsonMembers(body(max_completion_tokens=64))))

    assert (prefill["max_tokens"], prefill["max_completion_tokens"]) == (1, 1)


def test_a_responses_request_is_limited_by_its_own_name() -> None:
    prefill, _ = both(
        http_bodies(JsonMembers(b'{"model":"m","input":"hi","max_output_tokens":64}'))
    )

    assert prefill == {"model": "m", "input": "hi", "max_output_tokens": 1}


def test_a_lower_limit_does_not_stand_above_the_upper_one() -> None:
    prefill, decode = both(http_bodies(JsonMembers(body(min_tokens=16))))

    assert "min_tokens" not in prefill
    assert decode["min_tokens"] == 16


def test_http_decode_gets_the_very_same_bytes() -> None:
    raw = b'{ "model" : "m", "prompt":"x", "seed":1.0 }'

    assert http_bodies(JsonMembers(raw)).decode is raw


def test_t068_nixl_prefill_keeps_its_blocks_and_decode_is_told_where() -> None:
    raw = body(max_tokens=7)
    prefill, _ = both(nixl_bodies(JsonMembers(raw)))
    answer = b'{"id":"x","kv_transfer_params" : {"remote_block_ids":[1, 2],"n":1e3} ,"z":1}'

    assert prefill["kv_transfer_params"] == {"do_remote_decode": True, "do_remote_prefill": False}
    assert prefill["max_tokens"] == 1
    transfer = transfer_in(answer)
    assert transfer == b'{"remote_block_ids":[1, 2],"n":1e3}'
    assert json.loads(with_transfer(JsonMembers(raw), transfer)) == json.loads(raw) | {
        "kv_transfer_params": {"remote_block_ids": [1, 2], "n": 1000.0}
    }


def test_a_client_cannot_say_itself_where_blocks_are() -> None:
    raw = body(kv_transfer_params={"remote_host": "elsewhere"}, bootstrap_host="elsewhere")

    assert (
        json.loads(with_transfer(JsonMembers(raw), transfer_in(b"{}")))["kv_transfer_params"]
        is None
    )
    assert json.loads(sglang_bodies(JsonMembers(raw), ROOM).decode)["bootstrap_host"] == "10.0.0.1"


def test_half_a_character_in_an_answer_does_no_harm() -> None:
    answer = b'{"choices":[{"text":"\\ud83d"}],"kv_transfer_params":{"n":1}}'

    assert transfer_in(answer) == b'{"n":1}'


@pytest.mark.parametrize("answer", [b"", b"[1]", b"null", b'{"a":', b"\xff"])
def test_an_answer_that_is_no_object_is_told(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        transfer_in(answer)


def test_t070_sglang_halves_are_told_the_same_room() -> None:
    raw = body(stream=True, max_tokens=9)
    prefill, decode = both(sglang_bodies(JsonMembers(raw), ROOM))

    where = {"bootstrap_host": "10.0.0.1", "bootstrap_room": 2**63 - 1}
    assert prefill == {"model": "m", "prompt": "hello", "max_tokens": 1} | where
    assert decode == json.loads(raw) | where


def test_a_port_is_told_only_where_it_is_known() -> None:
    prefill, decode = both(sglang_bodies(JsonMembers(body()), ROOM._replace(port=9000)))

    assert prefill["bootstrap_port"] == decode["bootstrap_port"] == 9000


@pytest.mark.parametrize("prompts", [["a", "]", "\udcff,"], [[1, 2], [3], [4]]])
def test_each_prompt_of_a_batch_has_a_room(prompts: Any) -> None:
    prefill, decode = both(sglang_bodies(JsonMembers(body(prompt=prompts)), ROOM))

    rooms = decode["bootstrap_room"]
    assert prefill["bootstrap_room"] == rooms
    assert len(set(rooms)) == 3
    assert all(0 <= room < 2**63 for room in rooms)
    assert decode["bootstrap_host"] == ["10.0.0.1"] * 3


@pytest.mark.parametrize("prompt", ["a", "[", [1, 2, 3], [], None])
def test_one_prompt_has_one_room(prompt: Any) -> None:
    _, decode = both(sglang_bodies(JsonMembers(body(prompt=prompt)), ROOM))

    assert decode["bootstrap_room"] == 2**63 - 1


@given(
    st.sampled_from(list(Connector)),
    st.dictionaries(
        st.sampled_from(["stream", "max_tokens", "n", "stop", "user", "kv_transfer_params"]),
        st.none() | st.integers() | st.text() | st.lists(st.text(), max_size=2),
    ),
)
def test_decode_gets_all_that_the_client_wrote(connector: Connector, fields: Any) -> None:
    raw = body(**fields)
    before = bytes(raw)
    prefill, decode = both(
        bodies_of(connector, JsonMembers(raw), ROOM if connector is Connector.SGLANG else None)
    )

    assert raw == before
    assert {name: decode[name] for name in json.loads(raw)} == json.loads(raw)
    assert "stream" not in prefill
    assert prefill["max_tokens"] == 1


@pytest.mark.parametrize(
    ("declared", "engine", "connector"),
    [
        (None, "vLLM", Connector.HTTP),
        ("http", "vLLM", Connector.HTTP),
        ("lmcache", "vLLM", Connector.LMCACHE),
        ("nixl", "vLLM", Connector.NIXL),
        ("mooncake", "vLLM", Connector.MOONCAKE),
        ("sglang", "SGLang", Connector.SGLANG),
        (None, "SGLang", Connector.SGLANG),
        ("lmcache", "SGLang", Connector.LMCACHE),
        ("unheard-of", "vLLM", Connector.HTTP),
    ],
)
def test_t071_the_connector_follows_from_the_type_and_the_engine(
    declared: str | None, engine: str, connector: Connector
) -> None:
    assert connector_of(declared, engine) is connector


def test_rt_21_an_empty_connector_does_not_take_sglang_its_rooms() -> None:
    """Case 71 has http here, with which SGLang's halves can't work together (defect 21)."""
    assert connector_of("http", "SGLang") is Connector.SGLANG


def test_only_servers_with_roles_split_requests() -> None:
    split = disaggregation_of(
        server(endpoint(role="decode"), kv_connector="nixl", prefill_min_tokens=5)
    )

    assert disaggregation_of(server(endpoint(), kv_connector="nixl")) is None
    assert disaggregation_of(ServerEntry()) is None
    assert split is not None
    assert (split.connector, split.prefill_min_tokens) == (Connector.NIXL, 5)
