"""InferencePools, joined with the pods they select as ModelServers are.

Invariant: a pool has endpoints of its own: no ModelServer need select its pods (routing spec,
defect 28).
"""

from inferbus_contracts.resources.gateway_api import InferencePool
from inferbus_contracts.resources.networking import (
    InferenceEngine,
    ModelServer,
    ModelServerSpec,
    WorkloadPort,
    WorkloadSelector,
)
from inferbus_router_config_publisher.policy_objects import Stored


def as_server(stored: Stored[InferencePool]) -> Stored[ModelServer]:
    """The ModelServer that selects the same pods, on the pool's first port; one that can't be read
    stays so."""
    pool = stored.resource
    resource = None
    if pool is not None:
        ports = pool.spec.target_ports
        spec = ModelServerSpec(
            inference_engine=InferenceEngine.OPENAI,
            workload_selector=WorkloadSelector(match_labels=pool.spec.selector.match_labels),
            workload_port=WorkloadPort(port=ports[0].number) if ports else None,
        )
        resource = ModelServer(
            api_version=pool.api_version, kind=pool.kind, metadata=pool.metadata, spec=spec
        )
    return Stored(
        key=stored.key,
        uid=stored.uid,
        generation=stored.generation,
        resource=resource,
        fault=stored.fault,
    )


def further_ports(stored: Stored[InferencePool] | None) -> tuple[int, ...]:
    """The pool's ports behind the first: each pod is an endpoint on every one of them."""
    pool = stored.resource if stored else None
    return tuple(port.number for port in pool.spec.target_ports[1:]) if pool else ()
