import pytest

from tests.contracts.patterns import covers, overlap


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a.b", "a.b", True),
        ("a.*", "*.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.*", "a.b.c", False),
        ("a.b", "a.c", False),
    ],
)
def test_patterns_that_some_subject_fits_both(one: str, other: str, meet: bool) -> None:
    assert overlap(one, other) is meet
    assert overlap(other, one) is meet


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        (">", "a.*", True),
        ("a.>", "a.*.c", True),
        ("a.*", "a.b", True),
        ("a.*", "a.>", False),
        ("a.b", "a.*", False),
        ("a.>", "a", False),
        ("a", "a.b", False),
    ],
)
def test_patterns_that_hold_others(wide: str, narrow: str, covered: bool) -> None:
    assert covers(wide, narrow) is covered
