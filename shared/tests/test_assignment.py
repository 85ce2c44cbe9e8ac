"""Keys shared among members: all of them, fairly, and with few changes when a member comes."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.bus.assignment import assign

NAMES = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30)


@given(keys=NAMES, members=NAMES.filter(bool), random_=st.randoms(use_true_random=False))
def test_every_key_has_one_owner_and_nobody_more_than_a_fair_share(
    keys: list[str], members: list[str], random_: random.Random
) -> None:
    owners = assign(keys, members)
    assert owners.keys() == set(keys)
    assert set(owners.values()) <= set(members)
    assert max(Counter(owners.values()).values(), default=0) <= math.ceil(len(keys) / len(members))
    shuffled = random_.sample(keys, len(keys)), random_.sample(members, len(members))
    assert assign(*shuffled) == owners, "all members compute the same"


@given(keys=NAMES)
def test_without_members_nothing_is_owned(keys: list[str]) -> None:
    assert assign(keys, []) == {}


@pytest.mark.parametrize("count", range(1, 9))
def test_few_keys_move_but_to_the_one_that_comes(count: int) -> None:
    keys = [f"ModelServing/default/m{number}" for number in range(200)]
    members = [f"collector-{number}" for number in range(count)]
    before, after = assign(keys, members), assign(keys, [*members, "new"])
    taken = [key for key in keys if after[key] == "new"]
    moved = [key for key in keys if after[key] not in ("new", before[key])]
    assert len(taken) >= len(keys) // (count + 1) - count
    assert len(moved) <= len(keys) // 10
