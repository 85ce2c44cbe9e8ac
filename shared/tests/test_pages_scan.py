"""The scanner agrees with prometheus_client's parser, and loses nothing to a damaged line."""

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from inferbus_shared.pages.labels import read_labels
from inferbus_shared.pages.scan import FamilyType, Scan, scan
from tests.support.engine_pages import engine_page

NAMES = ("load", "load_by_reason", "loads", "vllm:load", "_load", "load_ratio")


class Line(NamedTuple):
    labels: tuple[tuple[str, str], ...]
    value: str
    stamp: str
    gap: str


def label_text(labels: tuple[tuple[str, str], ...]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    body = ",".join(f'{name}="{escaped(value)}"' for name, value in labels)
    return f"{{{body}}}" if labels else ""


numbers = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e9", "2.5E-3", "+4", "0"]),
)
values = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters='\n{}",=\\ #'), max_size=12
)
label_names = st.sampled_from(["a", "le", "model_name", "_x"])
lines = st.builds(
    Line,
    st.dictionaries(label_names.filter(lambda name: name != "le"), values, max_size=3).map(
        lambda labels: tuple(labels.items())
    ),
    numbers,
    st.sampled_from(["", " 1395066363000", "\t-3"]),
    st.sampled_from([" ", "  ", "\t"]),
)
families = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(
        st.sampled_from(["gauge", "untyped", ""]),
        st.lists(lines, max_size=4, unique_by=lambda line: line.labels),
    ),
    max_size=len(NAMES),
)


def rendered(page: dict[str, tuple[str, list[Line]]], end: str) -> str:
    text = ["# a comment", ""]
    for name, (kind, samples) in page.items():
        text.append(f"# HELP {name} about {name} {{}}")
        text += [f"# TYPE {name} {kind}"] if kind else []
        text += [f"{name}{label_text(s.labels)}{s.gap}{s.value}{s.stamp}" for s in samples]
    return end.join([*text, ""])


def seen(found: Scan, name: str) -> list[str]:
    return [repr(value) for value in found.samples.get(name, {}).values()]


@given(families, st.sampled_from(["\n", "\r\n"]), st.sets(st.sampled_from(NAMES)))
def test_wanted_samples_are_those_of_the_reference_parser(
    page: dict[str, tuple[str, list[Line]]], end: str, wanted: set[str]
) -> None:
    text = rendered(page, end)
    expected: dict[str, list[str]] = {name: [] for name in NAMES}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            expected[sample.name].append(repr(float(sample.value)))
    found = scan(text.encode(), wanted)
    assert found.malformed_lines == 0, found.first_malformed
    for name in wanted:
        assert seen(found, name) == expected[name]
    assert set(found.samples) <= wanted


@given(st.dictionaries(label_names, values, max_size=4), st.sampled_from(["0.5", "+Inf", "1e-3"]))
def test_labels_of_a_series_do_not_depend_on_the_bucket(labels: dict[str, str], le: str) -> None:
    others = {name: value for name, value in labels.items() if name != "le"}
    read = read_labels(label_text(tuple((others | {"le": le}).items())).encode())
    assert read.bound == float(le)
    assert read.series == read_labels(label_text(tuple(others.items())).encode()).series


@given(st.binary(max_size=200), st.sampled_from(["load", "a b", "x.*", "\n", ""]))
def test_any_bytes_are_read_without_an_exception(page: bytes, name: str) -> None:
    scan(page, {name})
    scan(b"load{" + page, {"load"})
    scan(b"# TYPE load histogram\nload_bucket{le=" + page, {"load"}).family("load")


def registry_page() -> bytes:
    registry = CollectorRegistry()
    Gauge("g", "h", ["a"], registry=registry).labels("x").set(4)
    Counter("c", "h", registry=registry).inc(7)
    Histogram("h", "h", ["m"], buckets=(1, 2), registry=registry).labels("x").observe(1.5)
    Histogram("steps_total", "h", buckets=(1, 2), registry=registry).observe(1.5)
    Summary("s", "h", registry=registry).observe(3)
    return generate_latest(registry)


@pytest.mark.parametrize(
    ("name", "type_", "values_"),
    [
        ("g", FamilyType.GAUGE, [4.0]),
        ("c", FamilyType.COUNTER, [7.0]),
        ("c_total", FamilyType.COUNTER, [7.0]),
        ("h", FamilyType.HISTOGRAM, [0.0, 1.0, 1.0]),
        ("h_count", FamilyType.COUNTER, [1.0]),
        ("h_sum", FamilyType.COUNTER, [1.5]),
        ("steps_total", FamilyType.HISTOGRAM, [0.0, 1.0, 1.0]),
        ("s", FamilyType.SUMMARY, [1.0]),
        ("s_sum", FamilyType.COUNTER, [3.0]),
    ],
)
def test_a_family_is_found_by_any_of_its_names(
    name: str, type_: FamilyType, values_: list[float]
) -> None:
    family = scan(registry_page(), {name}).family(name)
    assert family is not None
    assert family.type is type_
    assert list(family.series.values()) == values_


def test_names_that_begin_alike_and_absent_ones_are_told_apart() -> None:
    page = b"load_by_reason 1\nloads 2\nload_total_x 3\nmy_load 4\n"
    assert scan(page, {"load"}).family("load") is None
    assert scan(page, {"loads"}).family("loads") is not None


@pytest.mark.parametrize("name", ["", "_total", "_count"])
def test_a_name_that_is_nothing_but_a_suffix_takes_no_other_lines(name: str) -> None:
    found = scan(b"# HELP x y\n# TYPE x gauge\nx 1\n{} 2\n _ 3\n", {name})
    assert (found.malformed_lines, found.samples) == (0, {})


def test_openmetrics_counters_and_exemplars_are_understood() -> None:
    page = (
        b'# TYPE c counter\nc_total 5 # {trace_id="a"} 1.0\n'
        b"# TYPE h histogram\n"
        b'h_bucket{le="1"} 2 # {trace_id="b"} 0.5 1700000000.5\nh_bucket{le="+Inf"} 3\n# EOF\n'
    )
    found = scan(page, {"c", "h"})
    assert found.malformed_lines == 0
    counter, histogram = found.family("c"), found.family("h")
    assert counter is not None
    assert histogram is not None
    assert list(counter.series.values()) == [5.0]
    assert histogram.series == {b'{le="1"}': 2.0, b'{le="+Inf"}': 3.0}


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ('tokens{a="b"} 3', FamilyType.GAUGE),
        ("tokens_total 3", FamilyType.COUNTER),
        ('tokens_bucket{le="+Inf"} 3', FamilyType.HISTOGRAM),
    ],
)
def test_a_page_without_types_is_read_by_its_names(line: str, type_: FamilyType) -> None:
    family = scan(line.encode(), {"tokens"}).family("tokens")
    assert family is not None
    assert family.type is type_


@pytest.mark.parametrize(
    "line",
    [
        "load",
        "load x",
        "load 1_000",
        "load 1 2 3",
        "load 1 yesterday",
        'load{a="b" 1',
        "load{a=b} 1",
        'load{a="b}} 1',
        'load{a="b""c"} 1',
        'load{="b"} 1',
        'load{le="x"} 1',
        'load{le="NaN"} 1',
        "load} 1",
        "load 0x10",
    ],
)
def test_a_malformed_line_is_told_and_costs_nothing_else(line: str) -> None:
    page = f'load{{a="1"}} 1\n{line}\nload{{a="2"}} 2\nother {{{{ nonsense\n'
    found = scan(page.encode(), {"load"})
    assert found.malformed_lines == 1
    assert "".join(found.first_malformed.split()) == "".join(line.split())
    assert list(found.samples["load"].values()) == [1.0, 2.0]


def test_the_first_and_the_last_line_count_and_white_space_does_not() -> None:
    found = scan(b'load{ a = "1" , } 1\r\n  load{a="2"}2\n\tload{a="3"}\t3', {"load"})
    assert list(found.samples["load"].values()) == [1.0, 2.0, 3.0]
    assert found.malformed_lines == 0


def test_infinities_and_nan_are_numbers_to_the_scanner() -> None:
    found = scan(b'load{a="1"} NaN\nload{a="2"} +Inf\nload{a="3"} -Inf\n', {"load"})
    first, *others = found.samples["load"].values()
    assert math.isnan(first)
    assert others == [math.inf, -math.inf]


def test_labels_too_long_to_be_remembered_are_read_all_the_same() -> None:
    labels = f'{{prompt="{"x" * 5000}",le="2"}}'
    assert read_labels(labels.encode()).bound == 2.0


def test_a_whole_engine_page_gives_what_the_reference_parser_gives() -> None:
    page = engine_page(60_000)
    wanted = {"vllm:num_requests_waiting", "vllm:time_to_first_token_seconds"}
    found = scan(page, wanted)
    expected = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page.decode())
        if family.name in wanted
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }
    assert {
        name: value
        for name, series in found.samples.items()
        if not name.endswith("_bucket")
        for value in series.values()
    } == {name: value for name, value in expected.items() if not name.endswith("_created")}
    assert len(found.samples["vllm:time_to_first_token_seconds_bucket"]) == 23
