"""What a node says of itself in its Node object (core/v1).

The words are the kubelet's, because schedulers and people look for them: condition `Ready`, reason
`KubeletReady`, label `kubernetes.io/hostname`.
"""

from typing import Any

from inferbus_contracts.envelope import format_time
from inferbus_node_agent.policy_environment import NodeFacts

MOST_PODS = 110
"""The kubelet's default."""
HOST_NAME = "kubernetes.io/hostname"


def node_manifest(facts: NodeFacts) -> dict[str, Any]:
    """The Node object, for server-side apply."""
    return {**_identity(facts), "metadata": {"name": facts.name, "labels": _labels(facts)}}


def node_status(facts: NodeFacts, now_ms: int, ready_since_ms: int) -> dict[str, Any]:
    """The Node object with its status as of now, for server-side apply to the subresource."""
    amounts = {
        "cpu": str(facts.cpus),
        "memory": f"{facts.memory_bytes // 1024}Ki",
        "pods": str(MOST_PODS),
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the node agent runs",
        "lastHeartbeatTime": format_time(now_ms),
        "lastTransitionTime": format_time(ready_since_ms),
    }
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [
            {"type": "InternalIP", "address": facts.host_address},
            {"type": "Hostname", "address": facts.name},
        ],
        "conditions": [ready],
    }
    return {**_identity(facts), "status": status}


def _identity(facts: NodeFacts) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": facts.name}}


def _labels(facts: NodeFacts) -> dict[str, str]:
    return {HOST_NAME: facts.name, "kubernetes.io/os": "linux"}
