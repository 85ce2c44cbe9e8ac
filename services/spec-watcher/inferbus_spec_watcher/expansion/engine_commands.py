"""Command lines of a ModelBooster's engines.

Invariant: an engine is started without a shell, except where a script has to bring up Ray first;
then every word is quoted, so that the engine sees the same words (modelbooster spec 2.4, 7.3).
"""

import shlex
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.resources.booster import Worker
from inferbus_spec_watcher.expansion.accelerators import accelerator_count
from inferbus_spec_watcher.expansion.backend_plan import SERVED_MODEL_NAME, BackendPlan
from inferbus_spec_watcher.expansion.engine_flags import options_of, render_flags

KV_EVENTS = (
    '{"enable_kv_cache_events":true,"publisher":"zmq","topic":"kv-events",'
    '"endpoint":"tcp://*:5557"}'
)
"""What the sidecar listens to (modelbooster spec 2.4)."""

RAY_SCRIPTS = (
    "examples/online_serving/multi-node-serving.sh",
    "/vllm-workspace/vllm/examples/online_serving/multi-node-serving.sh",
)
"""In vLLM's image, below its working directory, and in the one for Ascend."""

RENDEZVOUS_PORT = 20000
"""Where the pods of a multi-node SGLang engine meet (ruling SGLang)."""


def vllm_command(plan: BackendPlan, worker: Worker) -> list[str]:
    """vLLM's API server in one pod, or as the head of a Ray cluster."""
    given = options_of({SERVED_MODEL_NAME: plan.served_model, **options_of(worker.config)})
    adapters = _adapters(plan, given, "lora-modules")
    given.setdefault("kv-events-config", KV_EVENTS)
    command = [
        *("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", plan.model_path),
        *render_flags(given | adapters),
    ]
    pods = worker_pods(plan, worker)
    return command if pods == 1 else _ray_head(command, given, worker, pods)


def ray_worker_command() -> list[str]:
    """A pod that lends its accelerators to the engine of its group's entry pod."""
    return ["bash", "-c", f"{_ray_script('worker')} --ray_address=$(ENTRY_ADDRESS)"]


def sglang_command(plan: BackendPlan, worker: Worker) -> list[str]:
    """SGLang's server; pods of a multi-node engine all run the same words (ruling SGLang)."""
    given = options_of(worker.config)
    adapters = _adapters(plan, given, "lora-paths")
    fixed: dict[str, Any] = {
        "model-path": plan.model_path,
        SERVED_MODEL_NAME: plan.served_model,
        "host": "0.0.0.0",
        "port": plan.port_of(worker),
        "enable-metrics": True,
    }
    pods = worker_pods(plan, worker)
    nodes: dict[str, Any] = {
        "nnodes": pods,
        "node-rank": "$(WORKER_INDEX)",
        "dist-init-addr": f"$(ENTRY_ADDRESS):{RENDEZVOUS_PORT}",
    }
    options = {
        **{name: given.pop(name, value) for name, value in fixed.items()},
        **given,
        **({name: given.get(name, value) for name, value in nodes.items()} if pods > 1 else {}),
        **adapters,
    }
    return ["python3", "-m", "sglang.launch_server", *render_flags(options, negatable=False)]


def worker_pods(plan: BackendPlan, worker: Worker) -> int:
    """Pods of one instance of a worker; prefill and decode workers have one."""
    return 1 if plan.backend.type.disaggregated else worker.effective_pods


def _adapters(plan: BackendPlan, given: dict[str, Any], flag: str) -> dict[str, Any]:
    """The options that load the backend's adapters; its list is taken out of `given`, because the
    engine reads such a flag once."""
    ours = [f"{one.name}={plan.path_of(one.artifact_url)}" for one in plan.backend.lora_adapters]
    if not ours:
        return {}
    theirs = given.pop(flag, [])
    given.pop("enable-lora", None)
    return {
        "enable-lora": True,
        flag: [*(theirs if isinstance(theirs, list) else [theirs]), *ours],
    }


def _ray_head(command: list[str], given: Mapping[str, Any], worker: Worker, pods: int) -> list[str]:
    backend = "distributed-executor-backend"
    engine = [*command, *([] if backend in given else [f"--{backend}", "ray"])]
    count = accelerator_count(worker.resources)
    head = f"{_ray_script('leader')} --ray_cluster_size={pods} --num-gpus={count}"
    return ["bash", "-c", f"{head} && exec {shlex.join(engine)}"]


def _ray_script(part: str) -> str:
    """The part of vLLM's own script, wherever the image has it."""
    found = f'for script in {" ".join(RAY_SCRIPTS)}; do if [ -f "$script" ]; then break; fi; done'
    return f'{found}; chmod u+x "$script" && "$script" {part}'
