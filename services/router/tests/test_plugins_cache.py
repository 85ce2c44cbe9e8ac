"""The cache-aware plugins: who has seen which beginning of a prompt."""

import hashlib

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_block_owners import BlockOwners
from inferbus_router.policy_plugins import PluginRequest
from inferbus_router.policy_plugins_cache import (
    PrefixOwners,
    chained_token_hashes,
    kvcache_aware,
    prefix_cache,
    prefix_hashes,
    token_bytes,
)
from services.router.tests.plugin_fleet import candidates, request

LONGER = b"This is a longer prompt that should span multiple blocks based on the block size"


def test_t059_hashes_are_the_references() -> None:
    assert xxhash.xxh64_intdigest(b"test-model") == 3725054772343846052
    assert prefix_hashes("test-model", b"Hello World", 64, 128) == [1993528491812861608]
    assert prefix_hashes("test-model", LONGER, 20, 128) == [
        8626393537367828840,
        16829149375953976751,
        13000309909902416355,
        4164474810863779859,
    ]


def test_t059_what_is_longer_than_the_most_blocks_is_cut() -> None:
    assert prefix_hashes("m", b"x" * 1000, 10, 7) == prefix_hashes("m", b"x" * 70, 10, 128)


@pytest.mark.parametrize("plugin", [prefix_cache(), kvcache_aware()], ids=lambda each: each.name)
def test_an_endpoint_scores_the_part_of_the_prompt_that_it_has_served(
    plugin: PrefixOwners,
) -> None:
    plugin.served(request("a" * 256), "1")

    assert plugin.scores(request("a" * 256), candidates(0, 0)) == [0, 100]
    assert plugin.scores(request("a" * 128 + "b" * 128), candidates(0, 0)) == [0, 50]
    assert plugin.scores(request("b" + "a" * 255), candidates(0, 0)) == [0, 0]


@pytest.mark.parametrize("plugin", [prefix_cache(), kvcache_aware()], ids=lambda each: each.name)
def test_rt_11_blocks_of_one_model_are_not_those_of_another(plugin: PrefixOwners) -> None:
    plugin.served(request("a" * 256, model="upstream"), "0")

    assert plugin.scores(request("a" * 256, model="upstream"), candidates(0)) == [100]
    assert plugin.scores(request("a" * 256, model="other"), candidates(0)) == [0]


def test_only_the_best_matches_count() -> None:
    plugin = prefix_cache(block_bytes=1, top=2)
    for name, prompt in (("0", "a"), ("1", "aaa"), ("2", "aa")):
        plugin.served(request(prompt), name)

    assert plugin.scores(request("aaaa"), candidates(0, 0, 0)) == [0, 75, 50]


def test_who_is_no_candidate_takes_no_place_among_the_best() -> None:
    plugin = prefix_cache(block_bytes=1, top=1)
    plugin.served(request("aaaa"), "elsewhere")
    plugin.served(request("aa"), "0")

    assert plugin.scores(request("aaaa"), candidates(0)) == [50]


def test_t060_a_deleted_endpoint_leaves_nothing_behind() -> None:
    owners = BlockOwners(100)
    owners.add("m", [1, 2], "a")
    owners.add("m", [1], "b")
    owners.add("other", [1], "a")
    owners.forget("a")

    assert owners.matches("m", [1, 2], {"a", "b"}, 5) == {"b": 1}
    assert owners.models() == ["m"]
    assert owners.blocks_by_endpoint() == {"b": 1}


def test_beyond_its_capacity_an_endpoint_forgets_the_ends_of_old_prompts_first() -> None:
    owners = BlockOwners(3)
    owners.add("m", [1, 2], "a")
    owners.add("m", [7, 8], "a")

    assert owners.matches("m", [1, 2], {"a"}, 1) == {"a": 1}
    assert owners.matches("m", [7, 8], {"a"}, 1) == {"a": 2}
    assert owners.evictions == {"m": 1}


def owned(blocks: dict[str, list[int]]) -> BlockOwners:
    """Who has which blocks of model `m`."""
    owners = BlockOwners(100)
    for endpoint, hashes in blocks.items():
        owners.add("m", hashes, endpoint)
    return owners


def test_t061_a_run_from_the_first_block_counts() -> None:
    """Blocks 1 to 4: q lacks the second, p the third."""
    runs = owned({"p": [1, 2, 4], "q": [1, 3]}).leading_runs("m", [1, 2, 3, 4], {"p", "q"})

    assert {endpoint: int(run / 4 * 100) for endpoint, run in runs.items()} == {"p": 50, "q": 25}


def test_t062_without_the_first_block_nothing_counts() -> None:
    assert owned({"p": [2, 3]}).leading_runs("m", [1, 2, 3], {"p"}) == {}


def test_a_run_of_who_is_no_candidate_does_not_count() -> None:
    assert owned({"p": [1, 2], "q": [1]}).leading_runs("m", [1, 2], {"q"}) == {"q": 1}


PROMPTS = st.lists(
    st.tuples(
        st.sampled_from("mn"), st.lists(st.integers(0, 30), max_size=6), st.sampled_from("ab")
    ),
    max_size=30,
)


@given(PROMPTS, st.integers(1, 5))
def test_the_memory_is_bounded_and_agrees_with_itself(
    prompts: list[tuple[str, list[int], str]], capacity: int
) -> None:
    owners = BlockOwners(capacity)
    for model, hashes, endpoint in prompts:
        owners.add(model, hashes, endpoint)
    blocks = owners.blocks_by_endpoint()

    assert all(count <= capacity for count in blocks.values())
    assert len(owners) == sum(blocks.values())
    for endpoint in "ab":
        owners.forget(endpoint)
    assert (len(owners), owners.models()) == (0, [])


def test_rt_10_a_block_is_found_only_behind_the_same_beginning() -> None:
    same_end = chained_token_hashes(b"AAAABBBB", 4, 128), chained_token_hashes(b"CCCCBBBB", 4, 128)

    assert same_end[0][1] != same_end[1][1]


def test_rt_10_a_block_that_is_not_full_is_not_hashed() -> None:
    assert chained_token_hashes(b"AAAABB", 4, 128) == chained_token_hashes(b"AAAABC", 4, 128)
    assert chained_token_hashes(b"AAA", 4, 128) == []


def test_rt_10_other_tools_are_another_beginning() -> None:
    plugin = kvcache_aware()
    plugin.served(request("a" * 256, tools=[{"name": "one"}]), "0")

    assert plugin.scores(request("a" * 256, tools=[{"name": "two"}]), candidates(0)) == [0]


def test_blocks_of_token_ids_are_of_the_declared_length() -> None:
    first = hashlib.sha256((1).to_bytes(4, "big") + (2).to_bytes(4, "big")).digest()

    assert chained_token_hashes(token_bytes(request([1, 2, 3])), 8, 128) == [
        int.from_bytes(first[:8], "big")
    ]


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"prompt": {}}', b"\xff", b'{"messages": 3}'])
@pytest.mark.parametrize("plugin", [prefix_cache(), kvcache_aware()], ids=lambda each: each.name)
def test_a_body_without_a_prompt_says_nothing(plugin: PrefixOwners, body: bytes) -> None:
    assert plugin.scores(PluginRequest("m", body), candidates(0)) is None
    plugin.served(PluginRequest("m", body), "0")
    assert len(plugin.owners) == 0
