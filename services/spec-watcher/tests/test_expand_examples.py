"""Manifests that users already have: their children, as reviewed, and that they would serve.

The reviewed children stand in `golden/`; `INFERBUS_WRITE_GOLDEN=1` writes them anew.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from expansion_store import Document, Store, read_documents

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import CORE_SERVICE, MODEL_SERVER
from inferbus_engine_simulator.policy_command_line import Defaults, parse_command_line
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_node_agent.policy_expansion import expand as expand_references
from inferbus_spec_watcher.expansion import expand
from inferbus_workload_reconciler.policy_parsing import parse_workload

EXAMPLES = Path(__file__).parents[4] / "shared" / "examples"
GOLDEN = Path(__file__).parent / "golden"

EXPANDED = (
    "kthena/Deepseek-R1-Distill-llama-8B.yaml",
    "kthena/Qwen2.5-0.5B-Instruct.yaml",
    "llmaz/hpa.yaml",
    "llmaz/huggingface.yaml",
    "llmaz/llamacpp.yaml",
    "llmaz/modelscope.yaml",
    "llmaz/multi-nodes-service.yaml",
    "llmaz/objstore-oss.yaml",
    "llmaz/ollama.yaml",
    "llmaz/sglang.yaml",
    "llmaz/speculative-decoding-llamacpp.yaml",
)
"""Files with a short object."""

ENGINE_KINDS = {
    "vLLM": EngineKind.VLLM,
    "SGLang": EngineKind.SGLANG,
    "LlamaCpp": EngineKind.LLAMACPP,
    "Ollama": EngineKind.OLLAMA,
}


def fleet(file: str) -> tuple[Store, list[Document]]:
    """The objects of a file with all their children, and the children."""
    path = EXAMPLES / file
    if not path.exists():
        pytest.skip(f"the example manifests are not beside this checkout: {path}")
    store = Store(*read_documents(path))
    return store, store.settle()


@pytest.mark.parametrize("file", EXPANDED)
def test_children_are_the_reviewed_ones(file: str) -> None:
    _, children = fleet(file)
    golden = GOLDEN / Path(file).name
    if os.environ.get("INFERBUS_WRITE_GOLDEN"):
        golden.write_text(yaml.safe_dump_all(children, sort_keys=True, width=100))
    assert children == list(yaml.safe_load_all(golden.read_text()))


def test_every_other_example_is_whole_as_it_is() -> None:
    files = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml")}
    if not files:
        pytest.skip(f"the example manifests are not beside this checkout: {EXAMPLES}")
    for file in sorted(files - set(EXPANDED)):
        store, children = fleet(file)
        assert children == []
        for document in store.objects.values():
            assert expand(document, store.objects.get, store.settings) is None


@pytest.mark.parametrize("file", EXPANDED)
def test_nothing_is_missing_or_doubtful(file: str) -> None:
    store, _ = fleet(file)
    for document in store.objects.values():
        result = expand(document, store.objects.get, store.settings)
        told = [one.reason for one in result.conditions] if result is not None else []
        assert told in ([], ["ChildrenRendered"])


def leading_pods(store: Store) -> Iterator[tuple[dict[str, str], Document]]:
    """Labels and template of every pod that leads a group, as the reconcilers name them."""
    for key, document in store.objects.items():
        spec = document["spec"]
        if key.kind == "ModelServing":
            for role in spec["template"]["roles"]:
                labels = {
                    "modelserving.volcano.sh/entry": "true",
                    "modelserving.volcano.sh/role": role["name"],
                }
                template = role["entryTemplate"]
                yield template["metadata"]["labels"] | labels, template
        elif key.kind == "LeaderWorkerSet":
            groups = spec["leaderWorkerTemplate"]
            template = groups.get("leaderTemplate") or groups["workerTemplate"]
            labels = {
                "leaderworkerset.sigs.k8s.io/name": key.name,
                "leaderworkerset.sigs.k8s.io/worker-index": "0",
            }
            yield template["metadata"]["labels"] | labels, template


def options_of(template: Document, engine: str) -> Any:
    """What the engine simulator would serve for the pod."""
    (container,) = [one for one in template["spec"]["containers"] if one["name"] != "runtime"]
    words = [*container.get("command", ()), *container.get("args", ())]
    environment = {one["name"]: one["value"] for one in container.get("env", ()) if "value" in one}
    injected = {"LWS_WORKER_INDEX": "0", "LWS_GROUP_SIZE": "2", "LWS_LEADER_ADDRESS": "leader"}
    argv = [expand_references(word, environment | injected) for word in words]
    return parse_command_line(argv, environment, Defaults(engine=ENGINE_KINDS[engine]))


@pytest.mark.parametrize("file", EXPANDED)
def test_engines_serve_the_name_and_port_that_requests_are_sent_to(file: str) -> None:
    store, children = fleet(file)
    servers = [one["spec"] for one in children if one["kind"] == MODEL_SERVER]
    assert servers
    for server in servers:
        wanted = server["workloadSelector"]["matchLabels"].items()
        pods = [pod for labels, pod in leading_pods(store) if wanted <= labels.items()]
        assert len(pods) == 1
        options = options_of(pods[0], server["inferenceEngine"])
        assert server["model"] in options.served_model_names
        assert server["workloadPort"]["port"] == options.port
        annotations = pods[0]["metadata"]["annotations"]
        assert annotations["inferbus.dev/engine-port"] == str(options.port)


@pytest.mark.parametrize("file", EXPANDED)
def test_routes_lead_to_servers_and_core_services_to_their_port(file: str) -> None:
    store, children = fleet(file)
    for one in children:
        spec, namespace = one["spec"], one["metadata"]["namespace"]
        if one["kind"] == "ModelRoute":
            for rule in spec["rules"]:
                for target in rule["targetModels"]:
                    key = ObjectKey(MODEL_SERVER, namespace, target["modelServerName"])
                    assert key in store.objects
        elif (one["apiVersion"], one["kind"]) == ("v1", "Service"):
            name = one["metadata"]["name"].removesuffix("-lb")
            server = store.get(MODEL_SERVER, name, namespace)["spec"]
            assert spec["selector"] == server["workloadSelector"]["matchLabels"]
            assert spec["ports"][0]["targetPort"] == server["workloadPort"]["port"]
            assert ObjectKey(CORE_SERVICE, namespace, f"{name}-lb") in store.objects


@pytest.mark.parametrize("file", [file for file in EXPANDED if file.startswith("kthena/")])
def test_the_reconciler_plans_what_a_booster_becomes(file: str) -> None:
    store, _ = fleet(file)
    for key, document in store.objects.items():
        if key.kind == "ModelServing":
            document["metadata"]["generation"] = 1
            assert [role.replicas for role in parse_workload(document).roles] == [1]
