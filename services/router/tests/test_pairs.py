"""Which prefill endpoint works with which decode endpoint."""

from collections.abc import Collection
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.pairs import Pair, pairs_of
from inferbus_router.policy_choice import EndpointLoad
from inferbus_router.policy_ejection import BASE_EJECTION_MS, EJECT_AFTER_FAILURES
from services.router.tests.builders import endpoint

NOW_MS = 1000


class Model:
    """The endpoints of a model server, and a policy for decode that is plain to see."""

    def __init__(self, *entries: EndpointEntry) -> None:
        self.loads = [EndpointLoad(entry.pod) for entry in entries]
        self.pairs = pairs_of(zip(entries, self.loads, strict=True))

    @property
    def decodes(self) -> list[str]:
        assert self.pairs
        return [each.pod for each in self.pairs.decodes]

    def load(self, pod: str) -> EndpointLoad:
        (found,) = (each for each in self.loads if each.pod == pod)
        return found

    def choose_decode(self, tried: Collection[EndpointLoad], now_ms: int) -> EndpointLoad | None:
        """The one with the fewest requests; those that failed come last."""
        assert self.pairs

        def rank(load: EndpointLoad) -> tuple[bool, bool, int]:
            return load in tried, not load.health.admits(now_ms), load.in_flight

        return min(self.pairs.decodes, key=rank, default=None)

    def chosen(self, *tried: str, now_ms: int = NOW_MS) -> Pair[EndpointLoad] | None:
        assert self.pairs
        failed = [self.load(pod) for pod in tried]
        return self.pairs.choose(self.choose_decode, failed, now_ms)


def part(name: str, **fields: Any) -> EndpointEntry:
    """`p1a` is prefill `a` of group 1, `d2b` decode `b` of group 2."""
    role = {"p": "prefill", "d": "decode"}[name[0]]
    known = {"pod": name, "role": role, "group": name[1], "address": f"10.0.0.{ord(name[2])}"}
    return endpoint(**known | fields)


def pods(model: Model, *tried: str, now_ms: int = NOW_MS) -> tuple[str, str]:
    pair = model.chosen(*tried, now_ms=now_ms)
    assert pair
    return pair.prefill.pod, pair.decode.pod


def eject(load: EndpointLoad, now_ms: int = NOW_MS) -> None:
    for _ in range(EJECT_AFTER_FAILURES):
        load.health.failed(now_ms)


def test_endpoints_without_roles_form_no_pairs() -> None:
    assert Model(endpoint()).pairs is None


def test_partners_are_of_one_group() -> None:
    model = Model(part("p1a"), part("d1a"), part("p2a"), part("d2a"), part("d2b"))

    found = set()
    for _ in range(3):
        prefill, decode = pods(model)
        found.add((prefill, decode))
        model.load(decode).in_flight += 1

    assert found == {("p1a", "d1a"), ("p2a", "d2a"), ("p2a", "d2b")}


def test_t066_a_decode_endpoint_without_prefill_in_its_group_is_no_candidate() -> None:
    model = Model(part("d1a"), part("p2a"), part("d3a", group="3"))

    assert model.decodes == []
    assert model.chosen() is None


def test_partners_that_are_not_ready_or_draining_do_not_count() -> None:
    model = Model(
        part("p1a", ready=False),
        part("d1a"),
        part("p2a", draining=True),
        part("d2a"),
        part("p3a"),
        part("d3a", draining=True),
        part("p4a"),
        part("d4a"),
    )

    assert model.decodes == ["d4a"]


def test_t065_a_group_whose_decode_is_busy_is_passed_over() -> None:
    """The reference filters by a polled gauge; here the load that the router knows decides."""
    model = Model(part("p1a"), part("d1a"), part("p2a"), part("d2a"))
    model.load("d1a").in_flight = 10

    assert pods(model) == ("p2a", "d2a")


def test_the_prefill_endpoint_with_the_fewest_queued_prompt_tokens_is_taken() -> None:
    model = Model(part("p1a"), part("p1b"), part("p1c"), part("d1a"))
    for pod, tokens, requests in [("p1a", 500, 1), ("p1b", 400, 20), ("p1c", 450, 90)]:
        model.load(pod).waiting_prompt_tokens = tokens
        model.load(pod).in_flight = requests

    assert pods(model) == ("p1b", "d1a")


def test_equal_prefill_endpoints_take_turns() -> None:
    model = Model(part("p1a"), part("p1b"), part("d1a"))

    assert {pods(model)[0] for _ in range(2)} == {"p1a", "p1b"}


def test_a_group_whose_prefill_is_ejected_is_passed_over_until_it_is_due() -> None:
    model = Model(part("p1a"), part("d1a"), part("p2a"), part("d2a"))
    eject(model.load("p1a"))
    model.load("d2a").in_flight = 1

    assert {pods(model) for _ in range(4)} == {("p2a", "d2a")}
    assert pods(model, now_ms=NOW_MS + BASE_EJECTION_MS) == ("p1a", "d1a")


def test_an_ejected_prefill_is_used_where_no_other_is_left() -> None:
    model = Model(part("p1a"), part("d1a"), part("d1b"))
    eject(model.load("p1a"))

    assert pods(model)[0] == "p1a"


def test_what_failed_this_request_is_tried_last() -> None:
    model = Model(part("p1a"), part("p1b"), part("d1a"), part("p2a"), part("d2a"))

    assert {pods(model, "p1a", "p1b") for _ in range(4)} == {("p2a", "d2a")}
    assert {pods(model, "d2a", "p1b") for _ in range(4)} == {("p1a", "d1a")}
    assert pods(model, "p1a", "p1b", "p2a", "d1a", "d2a")


def test_the_address_of_the_prefill_endpoint_is_told() -> None:
    pair = Model(part("p1a", address="10.1.2.3"), part("d1a")).chosen()

    assert pair
    assert pair.prefill_host == "10.1.2.3"


ENTRIES = st.lists(
    st.tuples(st.sampled_from("pd"), st.sampled_from("123"), st.booleans(), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(ENTRIES, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_a_pair_is_always_of_one_group_and_fit_where_there_is_a_fit_one(
    kinds: list[tuple[str, str, bool, bool]], ejected: set[int], tried: set[int]
) -> None:
    entries = [
        part(f"{role}{group}{chr(97 + index)}", ready=ready, draining=draining)
        for index, (role, group, ready, draining) in enumerate(kinds)
    ]
    model = Model(*entries)
    bad = {model.loads[index] for index in ejected | tried if index < len(entries)}
    for index in ejected:
        if index < len(entries):
            eject(model.loads[index])
    failed = [model.loads[index] for index in tried if index < len(entries)]
    usable = [
        (prefill, decode)
        for prefill, one in zip(model.loads, entries, strict=True)
        for decode, other in zip(model.loads, entries, strict=True)
        if (one.role, other.role) == ("prefill", "decode")
        and one.group == other.group
        and all(each.ready and not each.draining for each in (one, other))
    ]

    assert model.pairs
    pair = model.pairs.choose(model.choose_decode, failed, NOW_MS)

    assert (pair is None) == (not usable)
    if pair is not None:
        assert (pair.prefill, pair.decode) in usable
        fit = [one for one in usable if not bad.intersection(one)]
        assert not fit or not bad.intersection((pair.prefill, pair.decode))
