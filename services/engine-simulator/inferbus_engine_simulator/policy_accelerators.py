"""What the simulated hardware can do.

Memory, bandwidth and dense 16-bit rates are the makers' published figures; of these an engine gets
70 % of the bandwidth and 50 % of the compute, and every doubling of tensor parallelism keeps 90 %.
Start-up is a fixed part (process, graphs, warm-up) and the weights over a loading rate.

Invariant: `instant` takes no time at all; every other preset takes time for every step.
"""

import math
from typing import NamedTuple

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_simulator.policy_models import ModelShape
from inferbus_engine_simulator.policy_timing import INSTANT, StepTiming

_BANDWIDTH_EFFICIENCY = 0.7
_COMPUTE_EFFICIENCY = 0.5
_PARALLEL_EFFICIENCY = 0.9
_GIB = 2**30


class Accelerator(NamedTuple):
    """One device."""

    memory_gib: float
    bandwidth_gb_per_second: float
    compute_tflops: float
    overhead_us: float
    """Fixed cost of a step."""
    startup_seconds: float
    """Start-up apart from the weights."""
    load_gb_per_second: float
    """Rate at which weights are loaded."""

    @property
    def memory_bytes(self) -> float:
        """Memory of one device."""
        return self.memory_gib * _GIB


ACCELERATORS: dict[str, Accelerator] = {
    # 8 channels of DDR4, AVX-512; memory stands for the 4 GiB KV cache default of vLLM on CPU.
    "cpu": Accelerator(64, 200, 3, 4000, 15, 1.0),
    "t4": Accelerator(16, 320, 65, 3000, 35, 0.8),
    "l4": Accelerator(24, 300, 121, 2000, 30, 1.0),
    "a10": Accelerator(24, 600, 125, 2000, 30, 1.2),
    "l40s": Accelerator(48, 864, 362, 1800, 30, 1.5),
    "a100-80g": Accelerator(80, 2039, 312, 1800, 30, 2.0),
    "h100": Accelerator(80, 3350, 989, 1500, 30, 2.5),
    "h200": Accelerator(141, 4800, 989, 1500, 30, 2.5),
    "ascend-910b": Accelerator(64, 1600, 320, 2500, 45, 1.5),
    "instant": Accelerator(80, math.inf, math.inf, 0, 0, math.inf),
}


def accelerator(name: str) -> Accelerator:
    """The preset of that name; raises `ProblemsError` for an unknown one."""
    try:
        return ACCELERATORS[name]
    except KeyError:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message="there is no such accelerator preset",
                field="INFERBUS_ENGINE_SIMULATOR_ACCELERATOR",
                value=name,
                remedy=f"use one of {', '.join(ACCELERATORS)}",
            )
        ) from None


def step_timing(device: Accelerator, shape: ModelShape, devices: int = 1) -> StepTiming:
    """The cost of a step of that model on `devices` devices in tensor parallel."""
    if math.isinf(device.bandwidth_gb_per_second):
        return INSTANT
    scale = devices * _PARALLEL_EFFICIENCY ** math.log2(devices)
    bytes_per_us = device.bandwidth_gb_per_second * 1e3 * _BANDWIDTH_EFFICIENCY * scale
    operations_per_us = device.compute_tflops * 1e6 * _COMPUTE_EFFICIENCY * scale
    return StepTiming(
        overhead_us=device.overhead_us,
        weights_us=shape.active_weight_bytes / bytes_per_us,
        context_token_us=shape.kv_bytes_per_token / bytes_per_us,
        compute_token_us=2 * shape.active_billions * 1e9 / operations_per_us,
    )


def startup_ms(device: Accelerator, shape: ModelShape, devices: int = 1) -> int:
    """How long an engine of that model takes until it answers, milliseconds."""
    loading_seconds = shape.weight_bytes / 1e9 / (device.load_gb_per_second * devices)
    return round((device.startup_seconds + loading_seconds) * 1000)
