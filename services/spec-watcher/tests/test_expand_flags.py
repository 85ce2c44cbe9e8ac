"""From a worker's configuration to words of a command line (modelbooster spec 2.4, 7.6 item 1)."""

import json
import shlex
from typing import Any

import pytest
from expansion_builders import backend, booster, worker
from expansion_store import Store, child
from hypothesis import given
from hypothesis import strategies as st

from inferbus_spec_watcher.expansion.engine_flags import options_of, render_flags, value_after


def words(config: dict[str, Any], *, negatable: bool = True) -> list[str]:
    return render_flags(options_of(config), negatable=negatable)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"b": "1", "a": "2"}, ["--a", "2", "--b", "1"]),
        ({"max_model_len": 4096}, ["--max-model-len", "4096"]),
        ({"maxModelLen": 12288}, ["--max-model-len", "12288"]),
        ({"enforce-eager": ""}, ["--enforce-eager"]),
        ({"enforce-eager": True}, ["--enforce-eager"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"no-enable-prefix-caching": False}, ["--enable-prefix-caching"]),
        ({"max-model-len": 1048576}, ["--max-model-len", "1048576"]),
        ({"max-num-batched-tokens": 10**12}, ["--max-num-batched-tokens", "1000000000000"]),
        ({"max-model-len": 4096.0}, ["--max-model-len", "4096"]),
        ({"gpu-memory-utilization": 0.9}, ["--gpu-memory-utilization", "0.9"]),
        ({"seed": None}, []),
        ({"hf-overrides": {"b": [1], "a": "ü"}}, ["--hf-overrides", '{"a":"ü","b":[1]}']),
        ({"allowed-origins": ["*"]}, ["--allowed-origins", '["*"]']),
        ({"served-model-name": ["a", "b"]}, ["--served-model-name", "a", "b"]),
        ({"kv-transfer-config": '{"kv_role":"x"}'}, ["--kv-transfer-config", '{"kv_role":"x"}']),
        ({"chat-template": "${TEMPLATE} {{ x }}"}, ["--chat-template", "${TEMPLATE} {{ x }}"]),
    ],
)
def test_mb_2_4_each_kind_of_value(config: dict[str, Any], expected: list[str]) -> None:
    assert words(config) == expected


def test_a_switch_that_cannot_be_negated_is_left_out() -> None:
    assert words({"enable-metrics": False}, negatable=False) == []


SCALARS = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(max_size=8), st.none())
CONFIGS = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), SCALARS, max_size=6)


@given(CONFIGS, st.randoms())
def test_the_order_of_keys_does_not_matter(config: dict[str, Any], random: Any) -> None:
    keys = list(config)
    random.shuffle(keys)
    assert words({key: config[key] for key in keys}) == words(config)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.integers()))
def test_integers_arrive_exactly(config: dict[str, int]) -> None:
    found = words(config)
    assert {
        name[2:]: int(value) for name, value in zip(found[::2], found[1::2], strict=True)
    } == config


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("serve --port 1 --port=2", "2"),
        ("serve --port=1 --port 3", "3"),
        ("serve --ports 1", None),
        ("serve --port", None),
    ],
)
def test_the_last_flag_counts(line: str, expected: str | None) -> None:
    assert value_after(line.split(), ("--port",)) == expected


def engine(document: dict[str, Any]) -> dict[str, Any]:
    serving = child(Store(document).expand("ModelBooster", "chat", "llm"), "ModelServing")
    containers = serving["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["containers"]
    return next(one for one in containers if one["name"] == "engine")


NASTY = {"chat-template": "it's $HOME & {a,b}", "hf-overrides": {"x": ['"']}}


def test_without_a_shell_every_word_arrives_as_written() -> None:
    command = engine(booster(backend(workers=[worker(config=NASTY)])))["command"]
    assert value_after(command, ("--chat-template",)) == NASTY["chat-template"]
    overrides = value_after(command, ("--hf-overrides",))
    assert overrides is not None
    assert json.loads(overrides) == NASTY["hf-overrides"]


def test_mb_7_3_the_shell_around_ray_changes_no_word() -> None:
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    many = worker(config=NASTY, pods=3, resources=resources)
    program, flag, script = engine(booster(backend(workers=[many])))["command"]
    assert (program, flag) == ("bash", "-c")
    assert "leader --ray_cluster_size=3 --num-gpus=8 && exec " in script
    alone = engine(booster(backend(workers=[worker(config=NASTY)])))["command"]
    in_shell = shlex.split(script.partition("exec ")[2])
    assert in_shell == [*alone, "--distributed-executor-backend", "ray"]
