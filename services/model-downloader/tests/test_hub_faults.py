"""A hub that fails: what passes is waited for, what doesn't is told, nothing wrong is shown."""

import time

import pytest
from downloader_node import Node
from model_hub import Fault, ModelHub

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

WEIGHTS = "model-1.safetensors"
ONE = {"max_workers": 1}


async def problem_of(node: Node, **knobs: int) -> Problem:
    with pytest.raises(ProblemsError) as caught:
        await node.fetch(knobs=dict(knobs))
    assert not node.artifacts()
    assert not node.output.exists()
    return caught.value.problems[0]


@pytest.mark.parametrize("cut_after", [0, 1, 20_000])
async def test_a_connection_that_breaks_costs_nothing_that_arrived(
    node: Node, hub: ModelHub, files: dict[str, bytes], cut_after: int
) -> None:
    hub.faults[WEIGHTS].extend([Fault(cut_after=cut_after)] * 2)
    await node.fetch(knobs=ONE)
    assert node.shown() == files
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_a_connection_that_falls_silent_is_left(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults[WEIGHTS].extend([Fault(stall_after=30_000), Fault(stall_after=0)])
    await node.fetch(knobs={"stall_seconds": 0.1})
    assert node.shown() == files
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_a_slow_link_that_moves_is_not_a_silent_one(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.put({WEIGHTS: files[WEIGHTS][:200_000]})
    hub.bytes_per_second = 400_000
    await node.fetch(knobs={"max_workers": 1, "stall_seconds": 0.25, "retry_attempts": 1})
    assert node.shown() == {WEIGHTS: files[WEIGHTS][:200_000]}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_busy_source_is_asked_again(
    node: Node, hub: ModelHub, files: dict[str, bytes], status: int
) -> None:
    hub.faults[WEIGHTS].extend([Fault(status=status)] * 2)
    hub.listing_faults.extend([Fault(status=status)] * 2)
    await node.fetch(knobs=ONE)
    assert node.shown() == files


async def test_failures_in_a_row_are_counted_from_the_last_byte(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    for _ in range(6):
        hub.faults[WEIGHTS].extend([Fault(status=503), Fault(cut_after=900)])
    await node.fetch(knobs=ONE)
    assert node.shown() == files


async def test_a_source_that_stays_broken_is_told_and_what_came_is_kept(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults[WEIGHTS].extend([Fault(), *[Fault(status=503)] * 3])
    problem = await problem_of(node, max_workers=1)
    assert problem.code is ErrorCode.MODEL_SOURCE_UNREACHABLE
    assert "503" in problem.message
    await node.fetch()
    assert node.shown() == files
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_retry_after_is_waited_for(node: Node, hub: ModelHub) -> None:
    hub.faults["config.json"].append(Fault(status=429, headers={"Retry-After": "1"}))
    before = time.monotonic()
    await node.fetch()
    assert time.monotonic() - before >= 1.0


async def test_a_source_that_wants_too_long_a_pause_is_told_at_once(
    node: Node, hub: ModelHub
) -> None:
    hub.listing_faults.append(Fault(status=429, headers={"Retry-After": "600"}))
    problem = await problem_of(node)
    assert problem.code is ErrorCode.MODEL_SOURCE_UNREACHABLE
    assert "600 s" in problem.message


async def test_a_file_with_a_wrong_checksum_is_fetched_once_more(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults[WEIGHTS].append(Fault(flip=True))
    hub.faults["config.json"].append(Fault(flip=True))
    await node.fetch()
    assert node.shown() == files
    assert hub.sent_bytes == sum(map(len, files.values())) + len(files[WEIGHTS]) + len(
        files["config.json"]
    )
    assert node.progress.done_bytes == node.progress.total_bytes


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
async def test_a_file_that_stays_wrong_is_never_shown(
    node: Node, hub: ModelHub, files: dict[str, bytes], name: str
) -> None:
    hub.faults[name].extend([Fault(flip=True)] * 50)
    problem = await problem_of(node)
    assert problem.code is ErrorCode.MODEL_CORRUPT
    assert problem.field == name
    hub.faults.clear()
    await node.fetch()
    assert node.shown() == files


@pytest.mark.parametrize("pretended", [699_999, 700_002])
async def test_a_file_of_another_length_than_listed_is_refused(
    node: Node, hub: ModelHub, pretended: int
) -> None:
    hub.faults[WEIGHTS].append(Fault(pretend_bytes=pretended))
    assert (await problem_of(node)).code is ErrorCode.MODEL_CORRUPT


@pytest.mark.parametrize("pretended", [10, 23])
async def test_a_small_file_of_another_length_is_refused(
    node: Node, hub: ModelHub, pretended: int
) -> None:
    hub.ignores_ranges = True
    hub.faults["config.json"].append(Fault(pretend_bytes=pretended))
    assert (await problem_of(node)).code is ErrorCode.MODEL_CORRUPT


async def test_another_range_than_was_asked_for_is_not_taken(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults[WEIGHTS].append(Fault(shift=5))
    await node.fetch(knobs=ONE)
    assert node.shown() == files
    assert node.progress.received_bytes == sum(map(len, files.values()))


async def test_an_answer_that_is_shorter_than_asked_for_is_no_end(
    node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.faults[WEIGHTS].extend([Fault(short=100), Fault(short=0)])
    await node.fetch(knobs=ONE)
    assert node.shown() == files


async def test_a_source_that_gives_nothing_is_not_asked_for_ever(node: Node, hub: ModelHub) -> None:
    hub.faults[WEIGHTS].extend([Fault(short=0)] * 50)
    problem = await problem_of(node)
    assert problem.code is ErrorCode.MODEL_SOURCE_UNREACHABLE
    assert "early" in problem.message
