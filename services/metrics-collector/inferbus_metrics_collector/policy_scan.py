"""Reading some families out of a metrics page in one pass over its bytes.

Lines of other families are skipped by the regular expression engine and cost nothing else, so a
60 KB page takes a hundredth of what a parser of everything takes. Invariant: a malformed line of a
wanted family is counted and told, and never costs another line.
(Prometheus text exposition format 0.0.4, and the sample lines of OpenMetrics 1.0.)
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from inferbus_contracts.errors import shorten
from inferbus_metrics_collector.policy_labels import read_labels

_PATTERNS_REMEMBERED = 1_024
_SUFFIX = re.compile(r"(_total)?(_bucket|_sum|_count)?\Z")
_TAIL = re.compile(rb"([ \t]+[+-]?[0-9.]+)?([ \t]+#[^\n]*)?[ \t\r]*")
"""A time stamp and the beginning of an exemplar, each where there is one."""
_EXEMPLAR = re.compile(rb"(\{[^\n#]*\})[ \t]+([^\s{}]+)[ \t]+#[ \t]*\{")
_UNTYPED = "untyped"


class FamilyType(StrEnum):
    """What a family can be read as."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Family:
    """One family of a page."""

    name: str
    type: FamilyType
    series: dict[bytes, float]
    """Value by label text; for a histogram the cumulative count of each bucket line."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found of the wanted families."""

    types: dict[str, str] = field(default_factory=dict)
    """Declared type by family name."""
    samples: dict[str, dict[bytes, float]] = field(default_factory=dict)
    """Values by sample name (suffix included), then by label text as it was written."""
    malformed_lines: int = 0
    first_malformed: str = ""

    def family(self, name: str) -> Family | None:
        """The family that `name` stands for; None when the page has no sample of it.

        A counter answers to its name with and without `_total`; the `_sum` and `_count` of a
        histogram or summary are counters of their own; a family without a declared type is a
        histogram when it has buckets, a counter when its name says so, else a gauge.
        """
        type_ = self.types.get(name, _UNTYPED)
        if type_ == FamilyType.HISTOGRAM:
            return self._of(name, FamilyType.HISTOGRAM, f"{name}_bucket")
        if type_ == FamilyType.SUMMARY:
            return self._of(name, FamilyType.SUMMARY, f"{name}_count", name)
        if type_ == FamilyType.GAUGE:
            return self._of(name, FamilyType.GAUGE, name)
        if type_ == FamilyType.COUNTER or self._is_part_of_counter(name):
            return self._of(name, FamilyType.COUNTER, name, f"{name}_total")
        return self._of(name, FamilyType.GAUGE, name) or self._of(
            name, FamilyType.HISTOGRAM, f"{name}_bucket"
        )

    def _is_part_of_counter(self, name: str) -> bool:
        base, _, last = name.rpartition("_")
        if last in ("sum", "count"):
            declared = self.types.get(base) in (FamilyType.HISTOGRAM, FamilyType.SUMMARY)
            return declared or f"{base}_bucket" in self.samples
        return last == "total" or (name not in self.samples and f"{name}_total" in self.samples)

    def _of(self, name: str, type_: FamilyType, *sample_names: str) -> Family | None:
        for sample_name in sample_names:
            if sample_name in self.samples:
                return Family(name, type_, self.samples[sample_name])
        return None


def scan(page: bytes, wanted: Iterable[str]) -> Scan:
    """The samples of the `wanted` families on a page, whatever their type turns out to be."""
    names = frozenset(filter(None, wanted))
    if not names:
        return Scan()
    types: dict[str, str] = {}
    samples: dict[bytes, dict[bytes, float]] = {}
    malformed, first = 0, ""
    for declared, name, labels, value, tail, damaged in _pattern(names).findall(b"\n" + page):
        if declared:
            types[name.decode()] = value.decode(errors="replace")
            continue
        try:
            labels, number = _sample(labels, value, tail)
        except ValueError:
            malformed += 1
            line = b" ".join(filter(None, (name + labels, value + tail, damaged)))
            first = first or shorten(line.strip().decode(errors="replace"))
            continue
        series = samples.get(name)
        if series is None:
            series = samples[name] = {}
        series[labels] = number
    return Scan(types, {name.decode(): found for name, found in samples.items()}, malformed, first)


def _sample(labels: bytes, value: bytes, tail: bytes) -> tuple[bytes, float]:
    """Label text and value of a line; raises `ValueError` when it is malformed."""
    try:
        read_labels(labels)
    except ValueError:
        exemplar = _EXEMPLAR.match(labels)  # its braces were taken for those of the labels
        if exemplar is None:
            raise
        labels, value, tail = exemplar[1], exemplar[2], b""
        read_labels(labels)
    if b"_" in value:
        raise ValueError("digits cannot be grouped")
    if tail and not _TAIL.fullmatch(tail):
        raise ValueError("neither a time stamp nor an exemplar")
    return labels, float(value)


@lru_cache(maxsize=_PATTERNS_REMEMBERED)
def _pattern(names: frozenset[str]) -> re.Pattern[bytes]:
    """Matches each line of the families.

    Groups: `# TYPE` or nothing, name, labels, value or type, what follows it; or for a line that
    only begins like one, its name and the rest.
    """
    stems = sorted({(_SUFFIX.sub("", name, count=1) or name).encode() for name in names})
    stem = b"|".join(map(re.escape, stems))
    begins = b"".join(sorted({re.escape(text[:1]) for text in stems}))
    return re.compile(
        rb"\n(?=[#\s" + begins + rb"])[ \t]*(#[ \t]*TYPE[ \t]+|)"
        rb"((?:" + stem + rb")(?:_total)?(?:_bucket|_sum|_count)?)(?![\w:])[ \t]*"
        rb"(?:(\{[^\n]*\})?(?<=[}\s])[ \t]*([^\s{}]+)([^\n]*)|([^\n]*))"
    )
