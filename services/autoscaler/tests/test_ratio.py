"""The compat ratio repair against the table of autoscaling spec 6.4, by number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.policy_ratio import Repair, RoleReplicas, ratio_text, repair
from inferbus_autoscaler.policy_recommendation import RecommendationInput, recommend

P, D, LIMITS = (0, 8), (0, 16), (0.25, 1.0)

Bounds = tuple[int, int]


def repaired(
    pair: tuple[int, int],
    p: Bounds = P,
    d: Bounds = D,
    limits: tuple[float, float] | None = LIMITS,
) -> Repair:
    return repair(RoleReplicas(pair[0], *p), RoleReplicas(pair[1], *d), limits)


CASES = {
    "AS_T87": (repaired((2, 4)), (2, 4, False, "0.5")),
    "AS_T88": (repaired((1, 8)), (2, 8, True, "0.25")),
    "AS_T89": (repaired((6, 2)), (6, 6, True, "1")),
    "AS_T90a": (repaired((0, 4)), (1, 4, True, "0.25")),
    "AS_T90b": (repaired((4, 0)), (4, 4, True, "1")),
    "AS_T91": (repaired((0, 0)), (0, 0, False, "")),
    "AS_T92": (repaired((2, 20), (0, 3), (0, 20)), (3, 12, True, "0.25")),
    "AS_T93": (repaired((8, 2), (1, 8), (1, 3)), (3, 3, True, "1")),
    "AS_T94": (repaired((3, 13)), (4, 13, True, "0.3076923076923077")),
    "AS_T95": (repaired((12, 4)), (8, 8, True, "1")),
    "AS_T96": (
        repaired((1, 3), (1, 10), (1, 10), (0.5, 0.5)),
        (2, 3, True, "0.6666666666666666"),
    ),
    "AS_T97": (
        repaired((1, 2), (1, 10), (1, 10), (0.4, 0.45)),
        (1, 3, True, "0.3333333333333333"),
    ),
    "AS_T98": (repaired((1, 25), (0, 30), (0, 100), (0.28, 1.0)), (8, 25, True, "0.32")),
    "AS_T99": (repaired((2, 9), (2, 2), (1, 16), (0.5, 1.0)), (2, 4, True, "0.5")),
    "AS_T100": (repaired((10, 4), limits=None), (8, 4, False, "")),
}


@pytest.mark.parametrize("case", CASES)
def test_table(case: str) -> None:
    found, expected = CASES[case]
    assert (found.numerator, found.denominator, found.adjusted, found.ratio) == expected


def test_as_t101_a_cycle_recommends_each_role_and_then_repairs_the_pair() -> None:
    bounds = {"prefill": (1, 8), "decode": (2, 16)}
    wants = {
        role: recommend(
            RecommendationInput(
                min_replicas=bounds[role][0],
                max_replicas=bounds[role][1],
                current=current,
                tolerance_percent=0,
                targets={"m": 1.0},
                entries=[{"m": total}],
            )
        )
        for role, current, total in (("prefill", 1, 6.0), ("decode", 2, 2.0))
    }
    assert wants == {"prefill": 6, "decode": 2}
    found = repaired((6, 2), bounds["prefill"], bounds["decode"])
    assert (found.numerator, found.denominator, found.adjusted, found.ratio) == (6, 6, True, "1")


@given(
    pair=st.tuples(st.integers(0, 50), st.integers(0, 50)),
    lows=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    spans=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    limits=st.tuples(st.floats(0, 5), st.floats(0, 5)),
)
def test_both_roles_stay_inside_their_bounds(
    pair: tuple[int, int],
    lows: tuple[int, int],
    spans: tuple[int, int],
    limits: tuple[float, float],
) -> None:
    p, d = ((low, low + span) for low, span in zip(lows, spans, strict=True))
    found = repaired(pair, p, d, (min(limits), max(limits)))
    assert p[0] <= found.numerator <= p[1]
    assert d[0] <= found.denominator <= d[1]


def test_a_small_ratio_has_no_exponent() -> None:
    assert ratio_text(1, 1_000_000) == "0.000001"
