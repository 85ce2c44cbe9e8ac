"""What plain scalars mean."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.yaml_documents import parse_documents


def value_of(text: str) -> object:
    (document,) = parse_documents(f"a: {text}")
    return document.value["a"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("On", True),
        ("TRUE", True),
        ("no", False),
        ("off", False),
        ("y", "y"),
        ("tRUE", "tRUE"),
        ("10", 10),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("0777", 511),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("08", 8.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("0o17", "0o17"),
        ("22:22", "22:22"),
        ("190:20:30.15", "190:20:30.15"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("500m", "500m"),
        ("=", "="),
        ("", None),
        ("~", None),
        ("null", None),
        ('"10"', "10"),
        ("'yes'", "yes"),
        ("!!str 10", "10"),
        ('!!int "7"', 7),
        ("!!timestamp 2026-01-31", "2026-01-31"),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    read = value_of(text)
    assert read == value
    assert type(read) is type(value)


def test_keys_are_text() -> None:
    (document,) = parse_documents("1: a\noff: b\n1.5: c\n")
    assert document.value == {"1": "a", "false": "b", "1.5": "c"}


def test_merged_mappings_give_way_to_what_is_written_and_the_first_of_several_counts() -> None:
    text = """\
one: &one {a: 1, b: 1}
two: &two {b: 2, c: 2, d: 2}
both:
  <<: [*one, *two]
  c: 3
"""
    (document,) = parse_documents(text)
    assert document.value["both"] == {"a": 1, "b": 1, "c": 3, "d": 2}
    assert document.lines["both", "c"] == 5
    assert document.lines["both", "a"] == 1


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["C"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc ", min_size=1), inner),
        max_leaves=12,
    )
)
def test_what_pyyaml_writes_is_read_back(value: object) -> None:
    (document,) = parse_documents(yaml.safe_dump({"value": value}, allow_unicode=True))
    assert document.value == {"value": value}
