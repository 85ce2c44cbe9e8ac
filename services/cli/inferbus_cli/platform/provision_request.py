"""What the provisioning step is asked for, on its way to the process that does it.

The supervisor asks and must not import the bus for that: the NATS client is a fifth of a second of
every start, and memory for as long as the supervisor lives.
"""

import json
from dataclasses import dataclass
from typing import Self

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_shared.bus.server import storage_limit


@dataclass(frozen=True, kw_only=True)
class ProvisionRequest:
    """What the server is to be made fit for."""

    nodes: tuple[str, ...]
    storage_bytes: int
    """What the streams' shares are parts of."""
    clock_rate: float

    @classmethod
    def of(cls, directory: PlatformDirectory, state: PlatformState) -> Self:
        """What a platform needs; looks at the free space of its disk."""
        return cls(
            nodes=(state.node,),
            storage_bytes=storage_limit(directory.nats),
            clock_rate=state.clock_rate,
        )

    @classmethod
    def from_argument(cls, argument: str) -> Self:
        """The inverse of `argument`."""
        asked = json.loads(argument)
        return cls(
            nodes=tuple(asked["nodes"]),
            storage_bytes=asked["storageBytes"],
            clock_rate=asked["clockRate"],
        )

    @property
    def argument(self) -> str:
        """As one argument of a command."""
        return json.dumps(
            {
                "nodes": self.nodes,
                "storageBytes": self.storage_bytes,
                "clockRate": self.clock_rate,
            }
        )
