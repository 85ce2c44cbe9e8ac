"""Several simulated models on one platform, and where their pods answer."""

from collections.abc import Sequence
from typing import Any

from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import MODE, OBJECTIVE, ApplyMode
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.platform import MODEL_PORT, model_manifests

READY_SECONDS = 90.0


def workload_key(model: str) -> ObjectKey:
    """The key of the workload that `model_manifests` makes for a model."""
    return ObjectKey("ModelServing", "default", model)


async def ready_pods(bus: Bus, model: str) -> list[PodFact]:
    """The ready pods of a model as the bus says, in the order of their names."""
    fact = await bus.last("workload.observed", workload_key(model))
    if fact is None:
        return []
    assert isinstance(fact.data, WorkloadObserved)
    return sorted((pod for pod in fact.data.pods if pod.ready), key=lambda pod: pod.name)


async def engine_urls(bus: Bus, models: Sequence[str]) -> dict[str, str]:
    """The address of the first pod of each model, once every model has one."""

    async def urls() -> dict[str, str]:
        found = {model: await ready_pods(bus, model) for model in models}
        return {model: f"http://{pods[0].address}:{MODEL_PORT}" for model, pods in found.items()}

    return await eventually(urls, READY_SECONDS)


def advised_model(model: str) -> list[dict[str, Any]]:
    """A model whose policy only advises, and answers every change at once."""
    documents = model_manifests(model, scaling=(1, 8))
    policy = next(one for one in documents if one["kind"] == "AutoscalingPolicy")
    policy["spec"]["behavior"] = {
        "scaleUp": {"stablePolicy": {"period": "0s"}, "panicPolicy": {"panicModeHold": "0s"}},
        "scaleDown": {"period": "0s", "stabilizationWindow": "0s"},
    }
    for one in documents:
        if one["kind"] == "AutoscalingPolicyBinding":
            one["metadata"]["annotations"] = {MODE: ApplyMode.ADVISE.value}
    return documents


def objective_model(
    model: str,
    objective: str,
    *,
    bounds: tuple[int, int],
    mode: ApplyMode = ApplyMode.AUTO,
    engine_arguments: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """A model that starts at its least number; its policy has an objective and nothing else."""
    least, most = bounds
    documents = model_manifests(
        model, replicas=least, engine_arguments=engine_arguments, scaling=(least, most)
    )
    policy = next(one for one in documents if one["kind"] == "AutoscalingPolicy")
    policy["metadata"]["annotations"] = {OBJECTIVE: objective, MODE: mode.value}
    policy["spec"] = {"metrics": []}
    binding = next(one for one in documents if one["kind"] == "AutoscalingPolicyBinding")
    del binding["spec"]["homogeneousTarget"]["target"]["metricEndpoint"]
    return documents
