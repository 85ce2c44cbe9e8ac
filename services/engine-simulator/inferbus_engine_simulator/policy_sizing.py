"""What an engine with these options can hold on this accelerator.

The KV cache gets what `gpu_memory_utilization` leaves after the weights and a tenth of the memory
for activations, and at least one sequence of full length: where a real engine would refuse to
start for lack of memory, the simulated one runs with the smallest cache that works, and a note.

Invariant: a request within `max_model_len` always fits into the cache.
"""

from typing import NamedTuple

from inferbus_engine_simulator.policy_accelerators import Accelerator, startup_ms, step_timing
from inferbus_engine_simulator.policy_command_line import ServerOptions
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_limits import EngineLimits
from inferbus_engine_simulator.policy_models import ModelShape, guess_shape
from inferbus_engine_simulator.policy_timing import StepTiming
from inferbus_engine_simulator.policy_transfer import TransferTiming, transfer_timing

_DEFAULT_MODEL_LEN = 32768
_ACTIVATION_FRACTION = 0.1
_LARGE_MEMORY_GIB = 70
"""From here on vLLM's defaults for batch size and token budget are four times as large."""
_MIN_BLOCK_TOKENS = 16
"""SGLang's pages hold one token; the model shares prefixes in steps of 16, to stay small."""
_MAX_BLOCKS = 131_072
"""Two million tokens at 16 a block: bounds the memory of the simulation, not of the engine."""


class EngineSize(NamedTuple):
    """Everything the model of the engine needs to know."""

    shape: ModelShape
    limits: EngineLimits
    timing: StepTiming
    transfer: TransferTiming
    startup_ms: int
    max_model_len: int
    """Longest prompt and output together, tokens."""
    short_of_memory: bool
    """The weights and one sequence don't fit: a real engine would not start."""


def size_engine(
    options: ServerOptions, device: Accelerator, billions: float | None = None
) -> EngineSize:
    """Size of an engine; `billions` overrides the parameters guessed from the names."""
    shape = guess_shape(
        (options.model, *options.served_model_names, options.quantization), billions
    )
    devices = options.tensor_parallel_size * options.pipeline_parallel_size
    max_model_len = options.max_model_len or _DEFAULT_MODEL_LEN
    block_size = max(options.block_size, _MIN_BLOCK_TOKENS)
    wanted = -(-max_model_len // block_size) + 1
    affordable = _affordable_blocks(options, device, shape, devices, block_size)
    seqs = options.max_num_seqs or _default_seqs(options.engine, device)
    budget = options.max_num_batched_tokens or _default_budget(options.engine, device)
    return EngineSize(
        shape=shape,
        limits=EngineLimits(
            block_size_tokens=block_size,
            blocks=max(wanted, affordable),
            max_num_seqs=seqs,
            max_num_batched_tokens=max(budget, seqs),
            prefix_caching=options.prefix_caching,
        ),
        timing=step_timing(device, shape, options.tensor_parallel_size),
        transfer=transfer_timing(device, shape),
        startup_ms=startup_ms(device, shape, devices),
        max_model_len=max_model_len,
        short_of_memory=affordable < wanted,
    )


def _affordable_blocks(
    options: ServerOptions,
    device: Accelerator,
    shape: ModelShape,
    devices: int,
    block_size: int,
) -> int:
    usable = options.gpu_memory_utilization - _ACTIVATION_FRACTION
    free_bytes = device.memory_bytes * devices * usable - shape.weight_bytes
    block_bytes = shape.kv_bytes_per_token * block_size
    return min(max(0, int(free_bytes // block_bytes)), _MAX_BLOCKS)


def _default_seqs(engine: EngineKind, device: Accelerator) -> int:
    if engine is EngineKind.LLAMACPP:
        return 4
    large = device.memory_gib >= _LARGE_MEMORY_GIB
    return 1024 if engine is EngineKind.VLLM and large else 256


def _default_budget(engine: EngineKind, device: Accelerator) -> int:
    large = device.memory_gib >= _LARGE_MEMORY_GIB
    return 8192 if large or engine is EngineKind.SGLANG else 2048
