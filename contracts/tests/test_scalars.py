from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.resources.scalars import (
    parse_duration_ms,
    parse_quantity,
    percent_of,
    quantity_float,
    resolve_int_or_percent,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("1Gi", Fraction(1024**3)),
        ("0.1", Fraction(1, 10)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("100k", Fraction(100_000)),
        ("1Ki", Fraction(1024)),
        ("1M", Fraction(10**6)),
        ("2Ti", Fraction(2 * 1024**4)),
        ("3u", Fraction(3, 10**6)),
        ("7n", Fraction(7, 10**9)),
        ("12e-1", Fraction(6, 5)),
        ("5.", Fraction(5)),
        (".5", Fraction(1, 2)),
        ("+1", Fraction(1)),
        ("-100m", Fraction(-1, 10)),
        (10, Fraction(10)),
        (10.0, Fraction(10)),
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
        ("0", Fraction(0)),
    ],
)
def test_a_quantity_has_the_exact_value_of_its_text(text, value) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1", "1 ", "1gi", "1KI", "1K", "m", "1mm", "1e", "1e1000", "0x10", "1_000", "١"),
        *("--1", "1.2.3", "1" * 65, "9E999", "1e31", "nan", "inf", float("nan"), float("inf")),
    ],
)
def test_what_isnt_a_quantity_is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_a_quantity_is_a_number_or_a_string(value) -> None:
    with pytest.raises(TypeError):
        parse_quantity(value)


@given(st.floats(min_value=-1e29, max_value=1e29, allow_nan=False))
def test_a_float_means_its_shortest_decimal_form(number: float) -> None:
    assert quantity_float(number) == number
    assert parse_quantity(number) == parse_quantity(repr(number))


@given(st.integers(-(10**12), 10**12), st.sampled_from(["m", "", "k", "M", "Ki", "Mi", "Gi"]))
def test_suffixes_multiply(number: int, suffix: str) -> None:
    scales = {"m": Fraction(1, 1000), "k": 1000, "M": 10**6, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    assert parse_quantity(f"{number}{suffix}") == number * Fraction(scales.get(suffix, 1))


def test_the_float_of_a_quantity_is_the_nearest_one() -> None:
    assert quantity_float("100m") == 0.1
    assert quantity_float("9007199254740993") == 9007199254740992.0


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("15s", 15_000),
        ("1m30s", 90_000),
        ("500ms", 500),
        ("1h", 3_600_000),
        ("1.5s", 1500),
        (".5m", 30_000),
        (".05s", 50),
        ("0", 0),
        ("0s", 0),
        ("-1m", -60_000),
        ("+1s", 1000),
        ("1999us", 1),
        ("1500µs", 1),
        ("-1500us", -1),
        ("999ns", 0),
        ("1h2m3.004s", 3_723_004),
        ("30s1m", 90_000),
    ],
)
def test_durations_are_whole_milliseconds_cut_towards_zero(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "-", "5", "1d", "1 s", "s", "1s ", "1.5.5s", "1S", "١s", "1e3s", "300000000h"]
)
def test_what_isnt_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|longer"):
        parse_duration_ms(text)


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 999))
def test_parts_of_a_duration_add_up(minutes: int, seconds: int, milliseconds: int) -> None:
    text = f"{minutes}m{seconds}s{milliseconds}ms"
    assert parse_duration_ms(text) == (minutes * 60 + seconds) * 1000 + milliseconds


@pytest.mark.parametrize(
    ("value", "total", "down", "up"),
    [
        (3, 4, 3, 3),
        (0, 4, 0, 0),
        ("25%", 4, 1, 1),
        ("30%", 4, 1, 2),
        ("10%", 4, 0, 1),
        ("150%", 4, 6, 6),
    ],
)
def test_shares_are_rounded_the_way_asked_for(value, total: int, down: int, up: int) -> None:
    assert resolve_int_or_percent(value, total) == down
    assert resolve_int_or_percent(value, total, round_up=True) == up


@pytest.mark.parametrize("text", ["", "%", "-1%", "1.5%", "5", "٥%"])
def test_what_isnt_a_percentage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        percent_of(text)
