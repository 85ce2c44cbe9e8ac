"""Models whose prompts one engine computes and whose answers another: real processes, a stream.

One workload of vLLM engines that tell where their blocks are, one of SGLang engines that meet in
rooms; both on the one-machine platform, with their roles known by nothing but their command lines.
"""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.platform import MODEL_PORT, Platform, model_manifests, running_platform

SERVING = "modelserving.volcano.sh/"
PATIENCE_SECONDS = 60.0
ROLES = ("prefill", "decode")
PROMPT = "tell me a long story about " * 40
TOKENS = 5


def vllm(role: str) -> dict[str, Any]:
    """The container of a vLLM engine that hands its blocks over, or takes them."""
    kv_role = {"prefill": "kv_producer", "decode": "kv_consumer"}[role]
    transfer = {"kv_connector": "NixlConnector", "kv_role": kv_role}
    line = ["--model", "demo/model", "--served-model-name", "told"]
    return {
        "image": "vllm/vllm-openai:v0.9.0",
        "args": [*line, "--kv-transfer-config", json.dumps(transfer)],
    }


def sglang(role: str) -> dict[str, Any]:
    """The container of an SGLang engine of that role."""
    line = ["--model-path", "demo/model", "--served-model-name", "rooms"]
    where = ["--host", "0.0.0.0", "--port", str(MODEL_PORT)]
    return {
        "image": "lmsysorg/sglang:v0.5.7",
        "command": ["python3", "-m", "sglang.launch_server", *line, *where],
        "args": ["--disaggregation-mode", role],
    }


def paired(name: str, containers: dict[str, dict[str, Any]], **server: Any) -> list[dict[str, Any]]:
    """A model of one group with a prefill and a decode role."""
    serving, model_server, route = model_manifests(name)
    (role,) = serving["spec"]["template"]["roles"]
    serving["spec"]["template"]["roles"] = [_role(role, of, containers[of]) for of in ROLES]
    selector = {
        "matchLabels": {"app": name},
        "pdGroup": {
            "groupKey": f"{SERVING}group-name",
            "prefillLabels": {f"{SERVING}role": "prefill"},
            "decodeLabels": {f"{SERVING}role": "decode"},
        },
    }
    model_server["spec"] |= {"workloadSelector": selector, **server}
    return [serving, model_server, route]


def _role(role: dict[str, Any], name: str, container: dict[str, Any]) -> dict[str, Any]:
    entry = role["entryTemplate"]
    (known,) = entry["spec"]["containers"]
    kept = {key: value for key, value in known.items() if key != "args"}
    spec = {"containers": [kept | container]}
    return role | {"name": name, "entryTemplate": entry | {"spec": spec}}


def streamed(platform: Platform, model: str) -> list[Any]:
    """The events of a streamed completion; raises `HTTPError` for a refusal."""
    body = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "stream": True}
    request = urllib.request.Request(
        f"{platform.router}/v1/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        lines = reply.read().decode().splitlines()
    return [line.removeprefix("data: ") for line in lines if line]


def states(platform: Platform, model: str) -> Iterator[tuple[str, Any]]:
    """(role, what the simulated engine says of itself) of each pod of a model."""
    pods = json.loads(platform.inferbus("get", "Pod", "-o", "json").stdout)
    for pod in pods["items"] if isinstance(pods, dict) else pods:
        labels = pod["metadata"]["labels"]
        if labels.get("app") == model:
            address = f"http://{pod['status']['podIP']}:{MODEL_PORT}/simulator/state"
            with urllib.request.urlopen(address, timeout=30) as reply:
                yield labels[f"{SERVING}role"], json.loads(reply.read())


@pytest.mark.slow
async def test_prefill_and_decode_pods_serve_a_stream_together() -> None:
    models = {
        "told": paired("told", {role: vllm(role) for role in ROLES}, kvConnector={"type": "nixl"}),
        "rooms": paired("rooms", {role: sglang(role) for role in ROLES}, inferenceEngine="SGLang"),
    }
    with running_platform("--startup", "0") as platform:
        platform.apply(*(document for documents in models.values() for document in documents))
        for model in models:

            def answers(model: str = model) -> bool:
                return platform.complete(model).status == 200

            await eventually(answers, PATIENCE_SECONDS)
            before = dict(states(platform, model))
            *tokens, end, done = streamed(platform, model)

            assert done == "[DONE]"
            assert json.loads(end)["choices"][0]["finish_reason"] == "length"
            assert len(tokens) == TOKENS
            after = dict(states(platform, model))
            transferred = {
                role: after[role]["transferred_tokens"] - before[role]["transferred_tokens"]
                for role in ROLES
            }
            assert transferred["prefill"] == 0
            assert transferred["decode"] > 200
            produced = {
                role: after[role]["generation_tokens"] - before[role]["generation_tokens"]
                for role in ROLES
            }
            assert produced == {"prefill": 1, "decode": TOKENS}
