"""Tables, and the numbers in them."""

import pytest

from inferbus_cli.tables import aligned
from inferbus_cli.units import age, clock_time, latency, number, size

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def test_columns_stand_below_their_titles() -> None:
    rows = [("a", "1", ""), ("longer", "", "two\nlines")]
    assert aligned(("NAME", "N", "TEXT"), rows) == (
        "NAME     N   TEXT\n"  #
        "a        1   -\n"
        "longer   -   two lines\n"
    )


def test_wide_characters_take_two_columns() -> None:
    rows = [("模型", "x"), ("é", "y")]
    assert aligned(("N", "V"), rows) == ("N      V\n模型   x\né      y\n")


def test_an_empty_table_has_its_titles() -> None:
    assert aligned(("A", "B"), []) == "A   B\n"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, ""),
        (-5, "0s"),
        (999, "0s"),
        (119 * SECOND, "119s"),
        (2 * MINUTE, "2m"),
        (192 * SECOND, "3m12s"),
        (10 * MINUTE, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (47 * HOUR, "47h"),
        (51 * HOUR, "2d3h"),
        (9 * DAY, "9d"),
    ],
)
def test_an_age_has_at_most_two_units(milliseconds: int | None, text: str) -> None:
    assert age(milliseconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**40, "1.0 TiB")],
)
def test_a_size_is_binary(value: int | None, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (3.0, "3"),
        (0.1, "0.1"),
        (1 / 3, "0.3333"),
        (12345.6, "12346"),
        (123456789.0, "123456789"),
        (1e22, "1e+22"),
        (-2.5, "-2.5"),
    ],
)
def test_a_number_has_four_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_latencies_and_times() -> None:
    assert [latency(None), latency(85.4), latency(1240)] == ["", "85ms", "1.24s"]
    assert [latency(15_300), latency(115_300)] == ["15.3s", "115s"]
    assert clock_time(1_795_182_724_908) == "13:52:04.908"
