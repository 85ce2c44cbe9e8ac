"""Rules about how prefill and decode pods of a ModelServer work together (routing spec 4).

Engines decide what is possible; what can't work, or does nothing, is told and left as it is (ruling
4 of precedence).
"""

from collections.abc import Iterator

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, warning
from inferbus_contracts.resources.annotations import BOOTSTRAP_PORT, PREFILL_MIN_TOKENS
from inferbus_contracts.resources.networking import InferenceEngine, KVConnectorType, ModelServer


def connector_fits_engine(resource: ModelServer) -> Iterator[Finding]:
    """SGLang's prefill and decode meet in rooms whatever moves the cache; others know no rooms."""
    spec = resource.spec
    if spec.kv_connector is None or spec.workload_selector.pd_group is None:
        return
    type_ = spec.kv_connector.type
    if spec.inference_engine is InferenceEngine.SGLANG:
        fits = type_ not in (KVConnectorType.NIXL, KVConnectorType.MOONCAKE)
        remedy = "use sglang, which is meant by http too"
    else:
        fits = type_ is not KVConnectorType.SGLANG
        remedy = "use the connector that the engines were started with"
    if not fits:
        yield Finding(
            field="spec.kvConnector.type",
            message=f"prefill and decode pods of {spec.inference_engine} don't meet this way",
            value=type_,
            remedy=remedy,
        )


def disaggregation_is_used(resource: ModelServer) -> Iterator[Finding]:
    """Settings of prefill and decode that the way they work together leaves no room for."""
    spec = resource.spec
    is_sglang = spec.inference_engine is InferenceEngine.SGLANG
    is_paired = spec.workload_selector.pd_group is not None
    type_ = spec.kv_connector.type if spec.kv_connector else KVConnectorType.HTTP
    meets = is_paired and is_sglang and type_ in (KVConnectorType.HTTP, KVConnectorType.SGLANG)
    reads = {PREFILL_MIN_TOKENS: is_paired and not meets, BOOTSTRAP_PORT: meets}
    for name, is_read in reads.items():
        if name in resource.annotations and not is_read:
            yield Finding(
                field=child("metadata.annotations", name),
                message="has no effect here: "
                + ("SGLang's decode pods serve nothing alone" if meets else "no pods meet there"),
                value=resource.annotations[name],
                remedy="remove it",
            )


DISAGGREGATION_RULES: tuple[Rule, ...] = (
    warning("RT-24", "routing 4.2; ruling 4", "v0.1.0 accepts it", connector_fits_engine),
    warning("RT-25", "routing 4, defect 20", "it does nothing", disaggregation_is_used),
)
