"""Model sizes from names, presets, and what fits."""

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_engine_simulator.policy_accelerators import (
    ACCELERATORS,
    accelerator,
    startup_ms,
    step_timing,
)
from inferbus_engine_simulator.policy_command_line import ServerOptions, parse_command_line
from inferbus_engine_simulator.policy_models import guess_shape
from inferbus_engine_simulator.policy_sizing import size_engine


def options(*flags: str, model: str = "org/model-7b") -> ServerOptions:
    return parse_command_line(["vllm", "serve", model, *flags], {})


@pytest.mark.parametrize(
    ("name", "total", "active", "width"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", 0.5, 0.5, 2.0),
        ("qwen2-0--5b", 0.5, 0.5, 2.0),
        ("/workspace/models/models--facebook--opt-125m", 0.125, 0.125, 2.0),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct-AWQ", 70, 70, 0.56),
        ("deepseek-r1-distill-llama-8b", 8, 8, 2.0),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.5, 12.9, 2.0),
        ("Qwen/Qwen3-235B-A22B-FP8", 235, 22, 1.0),
        ("deepseek-ai/DeepSeek-V2-Lite", 15.7, 2.4, 2.0),
        ("deepseek-ai/DeepSeek-R1", 671, 37, 2.0),
        ("llama-2-7b-chat.Q4_K_M.gguf", 7, 7, 0.55),
        ("/models/18488ba95d6e1baca4a2755a6748053e", 7, 7, 2.0),
    ],
)
def test_size_from_a_name(name: str, total: float, active: float, width: float) -> None:
    shape = guess_shape([name])

    assert shape.total_billions == pytest.approx(total, rel=0.01)
    assert shape.active_billions == pytest.approx(active, rel=0.01)
    assert shape.bytes_per_parameter == pytest.approx(width)


def test_the_served_name_helps_where_the_path_says_nothing() -> None:
    assert guess_shape(["/models/1848", "Qwen2.5-72B"]).total_billions == 72
    assert guess_shape(["/models/1848"], billions=3).total_billions == 3


@pytest.mark.parametrize("name", sorted(ACCELERATORS))
def test_every_preset_runs_a_small_model(name: str) -> None:
    size = size_engine(options(model="org/m-1b"), accelerator(name))

    assert not size.short_of_memory
    instant = name == "instant"
    assert (size.timing.step_us(1, 0) == 0) is instant
    assert (size.startup_ms == 0) is instant


def test_an_unknown_preset_is_told_with_the_known_ones() -> None:
    with pytest.raises(ProblemsError, match=r"b300.*use one of cpu, t4"):
        accelerator("b300")


def test_faster_hardware_and_more_of_it_makes_steps_shorter() -> None:
    shape = guess_shape(["70b"])
    decode_us = [
        step_timing(accelerator(name), shape, devices).step_us(32, 32_000)
        for name, devices in [("t4", 4), ("a10", 4), ("a100-80g", 4), ("h100", 4), ("h100", 8)]
    ]

    assert decode_us == sorted(decode_us, reverse=True)
    assert startup_ms(accelerator("h100"), shape) > startup_ms(
        accelerator("h100"), guess_shape(["7b"])
    )


def test_an_8b_model_on_an_h100_decodes_at_published_speed() -> None:
    size = size_engine(options(model="meta-llama/Llama-3.1-8B"), accelerator("h100"))

    assert 5_000 < size.timing.step_us(1, 1000) < 12_000


def test_the_cache_gets_what_the_weights_leave() -> None:
    small = size_engine(options(model="org/m-7b"), accelerator("a10"))
    large = size_engine(options(model="org/m-7b"), accelerator("a100-80g"))
    quantised = size_engine(options(model="org/m-7b-AWQ"), accelerator("a10"))

    assert small.limits.blocks < quantised.limits.blocks < large.limits.blocks


def test_a_model_that_does_not_fit_still_runs_and_says_so() -> None:
    size = size_engine(options(model="org/m-70b"), accelerator("t4"))

    assert size.short_of_memory
    assert size.limits.blocks * size.limits.block_size_tokens >= size.max_model_len


@pytest.mark.parametrize("preset", ["t4", "h100", "instant"])
@pytest.mark.parametrize("length", ["17", "4096", "1000000"])
def test_a_request_of_full_length_always_fits(preset: str, length: str) -> None:
    size = size_engine(options("--max-model-len", length), accelerator(preset))

    assert size.max_model_len == int(length)
    assert size.limits.blocks * size.limits.block_size_tokens > int(length)


def test_the_token_budget_is_never_below_the_number_of_sequences() -> None:
    size = size_engine(options("--max-num-batched-tokens", "64"), accelerator("h100"))

    assert size.limits.max_num_batched_tokens >= size.limits.max_num_seqs


def test_a_transfer_takes_a_fraction_of_the_prefill_it_saves() -> None:
    size = size_engine(options(model="meta-llama/Llama-3.1-8B"), accelerator("h100"))
    prefill_us = size.timing.step_us(8192, 0)

    assert 0 < size.transfer.transfer_us(8192) < prefill_us / 2
    assert size.transfer.transfer_us(1) > 1000
    assert size.transfer.transfer_us(0) == 0


def test_on_instant_hardware_a_transfer_takes_no_time() -> None:
    size = size_engine(options(model="org/m-7b"), accelerator("instant"))

    assert size.transfer.transfer_us(100_000) == 0
