"""`env`, `envFrom`, `valueFrom` and `$(VAR)` as Kubernetes defines them."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_agent_builders import container, pod

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_node_agent.pods import parse_pod
from inferbus_node_agent.policy_base_environment import base_environment
from inferbus_node_agent.policy_containers import EngineMode
from inferbus_node_agent.policy_environment import (
    NodeFacts,
    SourceKind,
    SourceName,
    environment_of,
    sources_of_environment,
)
from inferbus_node_agent.policy_expansion import expand
from inferbus_node_agent.policy_sources import source_content

NODE = NodeFacts(name="n1", host_address="127.0.0.1", cpus=8, memory_bytes=16 * 2**30)
SETTINGS = SourceName(SourceKind.CONFIG_MAP, "settings")
HUB = SourceName(SourceKind.SECRET, "hub")
SOURCES: dict[SourceName, dict[str, bytes] | None] = {
    SETTINGS: {"LEVEL": b"debug", "not a name": b"x", "log.level": b"warn"},
    HUB: {"TOKEN": b"hunter2", "LEVEL": b"secret"},
}


def resolved(env: list[dict[str, Any]], **more: Any) -> dict[str, str]:
    metadata = {"uid": "uid-1", "labels": {"app": "chat"}, "annotations": {"a/b": "note"}}
    document = pod("chat-0", container("main", env=env, **more), metadata=metadata)
    parsed = parse_pod(document)
    return environment_of(parsed, parsed.spec.containers[0], "127.1.16.20", NODE, SOURCES)


def problem_of(env: list[dict[str, Any]], **more: Any) -> str:
    with pytest.raises(ProblemsError) as caught:
        resolved(env, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$A", "$A"),
        ("$", "$"),
        ("$$", "$"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$(A$(B))", "$(A$(B))"),
        ("cost: 5$", "cost: 5$"),
        ("$(NESTED)", "$(A)"),
        ("$(with space)", "yes"),
    ],
)
def test_references_are_expanded_once(text: str, expected: str) -> None:
    variables = {"A": "1", "B": "2", "NESTED": "$(A)", "with space": "yes"}
    assert expand(text, variables) == expected


@given(st.text(alphabet="$()AB x", max_size=30))
def test_text_without_references_to_known_variables_loses_only_escapes(text: str) -> None:
    assert expand(text, {}).replace("$", "") == text.replace("$", "")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "chat-0"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['app']", "chat"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a/b']", "note"),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.1.16.20"),
        ("status.podIPs", "127.1.16.20"),
        ("status.hostIP", "127.0.0.1"),
        ("status.hostIPs", "127.0.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, expected: str) -> None:
    env = [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert resolved(env) == {"X": expected}


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.memory", None, str(3 * 2**30)),
        ("limits.memory", "1Mi", "3072"),
        ("limits.memory", "1Gi", "3"),
        ("requests.cpu", "1m", "250"),
        ("requests.memory", None, "0"),
        ("limits.nvidia.com/gpu", None, "4"),
        ("limits.ephemeral-storage", None, "0"),
    ],
)
def test_resources_are_rounded_up(resource: str, divisor: str | None, expected: str) -> None:
    selector: dict[str, Any] = {"resource": resource}
    if divisor:
        selector["divisor"] = divisor
    env = [{"name": "X", "valueFrom": {"resourceFieldRef": selector}}]
    resources = {
        "limits": {"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": 4},
        "requests": {"cpu": "250m"},
    }
    assert resolved(env, resources=resources) == {"X": expected}


def test_a_limit_that_is_not_set_is_the_nodes() -> None:
    env = [{"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    assert resolved(env) == {"X": "8"}


def test_later_entries_see_and_replace_earlier_ones() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)"},
        {"name": "C", "value": "3"},
        {"name": "A", "value": "again $(A)"},
    ]
    assert resolved(env) == {"A": "again 1", "B": "1-$(C)", "C": "3"}


def test_whole_sources_come_first_and_in_order() -> None:
    env_from = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "hub"}}]
    env = [{"name": "SAID", "value": "$(LEVEL)"}, {"name": "TOKEN", "value": "mine"}]
    assert resolved(env, envFrom=env_from) == {
        "LEVEL": "secret",
        "log.level": "warn",
        "TOKEN": "mine",
        "SAID": "secret",
    }


def test_a_prefix_is_put_before_every_key() -> None:
    env_from = [{"prefix": "HUB_", "secretRef": {"name": "hub"}}]
    assert resolved([], envFrom=env_from) == {"HUB_TOKEN": "hunter2", "HUB_LEVEL": "secret"}


def test_single_keys() -> None:
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "TOKEN"}}},
    ]
    assert resolved(env) == {"A": "debug", "B": "hunter2"}


def test_what_comes_from_elsewhere_is_not_expanded() -> None:
    SOURCES[SourceName(SourceKind.CONFIG_MAP, "raw")] = {"K": b"$(A)"}
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "raw", "key": "K"}}},
    ]
    assert resolved(env)["B"] == "$(A)"


@pytest.mark.parametrize(
    ("source", "needle"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "K"}}, "no ConfigMap 'none'"),
        ({"configMapKeyRef": {"name": "settings", "key": "K"}}, "'settings' has no key 'K'"),
        ({"secretKeyRef": {"name": "none", "key": "K"}}, "no Secret 'none'"),
        ({"secretKeyRef": {"name": "hub", "key": "K"}}, "'hub' has no key 'K'"),
    ],
)
def test_what_is_missing_is_named_unless_optional(source: dict[str, Any], needle: str) -> None:
    env = [{"name": "X", "valueFrom": source}]
    said = problem_of(env)
    assert needle in said
    assert "env[X]" in said
    assert "hunter2" not in said
    for selector in source.values():
        selector["optional"] = True
    assert resolved(env) == {}


def test_all_missing_sources_are_told_at_once() -> None:
    env_from = [{"configMapRef": {"name": "one"}}, {"secretRef": {"name": "two"}}]
    said = problem_of([], envFrom=env_from)
    assert "'one'" in said
    assert "'two'" in said
    optional = [{"configMapRef": {"name": "one", "optional": True}}]
    assert resolved([], envFrom=optional) == {}


@pytest.mark.parametrize(
    "source",
    [
        {"fieldRef": {"fieldPath": "spec.hostNetwork"}},
        {"fieldRef": {"fieldPath": "metadata.labels"}},
        {"resourceFieldRef": {"resource": "cpu"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "lots"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "other"}},
    ],
)
def test_what_cannot_be_had_is_told(source: dict[str, Any]) -> None:
    with pytest.raises(ProblemsError) as caught:
        resolved([{"name": "X", "valueFrom": source}])
    assert caught.value.problems[0].code is ErrorCode.UNSUPPORTED


def test_what_has_to_be_looked_up() -> None:
    env = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "K"}}},
        {"name": "B", "value": "1"},
    ]
    parsed = parse_pod(
        pod("a", container("main", env=env, envFrom=[{"configMapRef": {"name": "settings"}}]))
    )
    assert sources_of_environment(parsed.spec.containers[0]) == {HUB, SETTINGS}


# --- the content of sources


def test_secrets_are_decoded() -> None:
    encoded = base64.b64encode(b"hunter2").decode()
    document = {"data": {"a": encoded}, "stringData": {"b": "plain"}}
    assert source_content(HUB, document) == {"a": b"hunter2", "b": b"plain"}


def test_config_maps_may_hold_bytes() -> None:
    document = {"data": {"a": "text"}, "binaryData": {"b": base64.b64encode(b"\xff").decode()}}
    assert source_content(SETTINGS, document) == {"a": b"text", "b": b"\xff"}


def test_a_malformed_secret_is_told_without_its_value() -> None:
    with pytest.raises(ProblemsError, match="'a' is not base64") as caught:
        source_content(HUB, {"data": {"a": "hunter2!"}})
    assert "hunter2" not in str(caught.value)


def test_a_config_map_holds_text() -> None:
    with pytest.raises(ProblemsError, match="'a' is not text"):
        source_content(SETTINGS, {"data": {"a": 5}})


# --- before the manifest speaks


def test_the_platforms_own_settings_stay_with_the_platform() -> None:
    agent = {
        "PATH": "/bin",
        "HF_HOME": "/models",
        "INFERBUS_NATS_CREDENTIALS": "/secret",
        "INFERBUS_ENGINE_SIMULATOR_SEED": "7",
        "INFERBUS_CLOCK_RATE": "10",
    }
    real = base_environment(agent, EngineMode.REAL, "chat-0", 30)
    assert real == {"PATH": "/bin", "HF_HOME": "/models", "HOSTNAME": "chat-0"}
    simulated = base_environment(agent, EngineMode.SIMULATED, "chat-0", 30)
    assert simulated == {
        "PATH": "/bin",
        "INFERBUS_ENGINE_SIMULATOR_SEED": "7",
        "INFERBUS_ENGINE_SIMULATOR_DRAIN_SECONDS": "29",
        "INFERBUS_CLOCK_RATE": "10",
        "HOSTNAME": "chat-0",
    }
