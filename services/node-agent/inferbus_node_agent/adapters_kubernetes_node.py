"""The Node object of this machine: made once, and its heartbeat.

Invariant: a Node object that somebody deletes stays deleted until the agent is started again, as
with the kubelet; that is how an operator says that a machine is lost.
"""

import logging

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_node_agent.adapters_kubernetes import MANAGER
from inferbus_node_agent.policy_environment import NodeFacts
from inferbus_node_agent.policy_node import node_manifest, node_status
from inferbus_shared.clock import Clock
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import NODE

log = logging.getLogger("inferbus.node_agent")

HEARTBEAT_SECONDS = 10.0
"""Every so often; node controllers take 40 s of silence for a lost node."""


class NodeObject:
    """Keeps the Node object; `run` it."""

    def __init__(self, client: KubeClient, facts: NodeFacts, clock: Clock) -> None:
        self._client = client
        self._facts = facts
        self._clock = clock
        self._since_ms = clock.now_ms()
        self._exists = False

    async def run(self) -> None:
        """Make the object, then say for ever that the node is ready."""
        while True:
            try:
                await self.beat()
            except ProblemsError as error:
                log.warning("node object not told", extra={"problem": str(error)})
            await self._clock.sleep(HEARTBEAT_SECONDS)

    async def beat(self) -> None:
        """Say once that the node is ready; raises `ProblemsError` when that isn't heard."""
        if not self._exists:
            await self._client.apply(NODE, node_manifest(self._facts), manager=MANAGER, force=True)
            self._exists = True
        status = node_status(self._facts, self._clock.now_ms(), self._since_ms)
        try:
            # The node controller writes `Ready=Unknown` over a node that was silent.
            await self._client.apply(
                NODE, status, manager=MANAGER, force=True, subresource="status"
            )
        except KubeError as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            log.info("node object was deleted; the pods stay until theirs are")
