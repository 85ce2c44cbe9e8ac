"""How long key-value blocks take from one engine to another.

The bytes of the prompt over a link of 200 Gbit/s, of which transfers reach 80 %, and a fixed part
for the handshake (Mooncake, FAST 2025; DistServe, OSDI 2024, put the transfer at a few decoding
steps). Invariant: more tokens never take less time; on hardware that takes no time, neither does
this.
"""

from typing import NamedTuple

from inferbus_engine_simulator.policy_accelerators import Accelerator
from inferbus_engine_simulator.policy_models import ModelShape

_LINK_BYTES_PER_US = 200e9 / 8 / 1e6 * 0.8
_HANDSHAKE_US = 2000.0


class TransferTiming(NamedTuple):
    """The cost of a transfer, in microseconds."""

    fixed_us: float = 0.0
    token_us: float = 0.0

    def transfer_us(self, tokens: int) -> int:
        """Until the blocks of so many tokens are there."""
        return round(self.fixed_us + self.token_us * tokens) if tokens else 0


def transfer_timing(device: Accelerator, shape: ModelShape) -> TransferTiming:
    """Between two engines of that model on such devices."""
    if not device.overhead_us:
        return TransferTiming()
    return TransferTiming(_HANDSHAKE_US, shape.kv_bytes_per_token / _LINK_BYTES_PER_US)
