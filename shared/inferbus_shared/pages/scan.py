"""Reading some families out of a metrics page in one pass over its bytes.

Lines of other families are skipped by the regular expression engine and cost nothing else, so a
60 KB page takes a hundredth of what a parser of everything takes. Invariant: a damaged line of a
wanted family is counted and told, and never costs another line; what is kept of a page is bounded.
(Prometheus text exposition format 0.0.4, and the sample lines of OpenMetrics 1.0.)
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from inferbus_contracts.errors import shorten
from inferbus_shared.pages.labels import LONGEST_LABELS_BYTES, read_labels
from inferbus_shared.pages.patterns import line_pattern

MOST_SAMPLES = 8_192
"""Lines of the wanted families on one page; ten families of an engine have some 250."""

MOST_LABEL_BYTES = 1024 * 1024
"""Of all those lines together; those of an engine have some 25 KB."""

PIECE_BYTES = 128 * 1024
"""Read at a stretch: others wait so long at most."""

_MOST_PIECE_BYTES = 3 * PIECE_BYTES
"""More is a line without an end, which is not looked at."""

_LONGEST_WORD_BYTES = 64
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


_TYPES = frozenset(FamilyType)


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
    """Declared type by family name; only types of `FamilyType`."""
    samples: dict[str, dict[bytes, float]] = field(default_factory=dict)
    """Values by sample name (suffix included), then by label text as it was written."""
    malformed_lines: int = 0
    first_malformed: str = ""
    repeated_lines: int = 0
    """Samples that the page had already, of which the last counts."""
    first_repeated: str = ""
    is_bare: bool = False
    """Nothing at all stands on the page: an engine that nobody has asked yet may be so."""
    is_too_much: bool = False
    """More than `MOST_SAMPLES` or `MOST_LABEL_BYTES`: none was kept."""
    _families: dict[str, Family | None] = field(default_factory=dict, compare=False, repr=False)
    """Those that were asked for: a page is asked again as the past of a later one."""

    @property
    def is_foreign(self) -> bool:
        """Something stands on the page, and nothing of what was looked for."""
        return not (self.is_bare or self.types or self.samples or self.damage)

    @property
    def damage(self) -> tuple[str, ...]:
        """What is wrong with the page; nothing where it can be believed."""
        if self.is_too_much:
            return (f"more than {MOST_SAMPLES} lines of what is looked for, or too long ones",)
        found = []
        if self.malformed_lines:
            found.append(f"{self.malformed_lines} malformed lines: {self.first_malformed}")
        if self.repeated_lines:
            found.append(
                f"{self.repeated_lines} samples that are there twice: {self.first_repeated}"
            )
        return tuple(found)

    def family(self, name: str) -> Family | None:
        """The family that `name` stands for; None when the page has no sample of it.

        A counter answers to its name with and without `_total`; the `_sum` and `_count` of a
        histogram or summary are counters of their own; a family without a declared type is a
        histogram when it has buckets, a counter when its name says so, else a gauge.
        """
        if name not in self._families:
            self._families[name] = self._family(name)
        return self._families[name]

    def _family(self, name: str) -> Family | None:
        type_ = self.types.get(name, _UNTYPED)
        if type_ is _UNTYPED and not self._has_sample_of(name):
            return None
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

    def _has_sample_of(self, name: str) -> bool:
        known = self.samples
        return name in known or name + "_total" in known or name + "_bucket" in known

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
    reading = PageReading(page, wanted)
    for _ in reading.pauses():
        pass
    return reading.found()


class PageReading:
    """A page that is read as by `scan`, in pieces, so that a huge one doesn't stop the others."""

    def __init__(self, page: bytes, wanted: Iterable[str]) -> None:
        """`wanted`: the families to look for."""
        names = frozenset(filter(None, wanted))
        self._page = page
        self._pattern = line_pattern(names) if names else None
        self._lines = _Lines()

    def pauses(self) -> Iterator[None]:
        """Read it all, pausing after every `PIECE_BYTES` but the last."""
        if self._pattern is None:
            return
        begin, size = 0, len(self._page)
        while begin < size and not self._lines.is_too_much:
            if begin:
                yield
            end = self._page.find(b"\n", begin + PIECE_BYTES)
            end = size if end < 0 else end
            if end - begin <= _MOST_PIECE_BYTES:
                self._lines.take(self._pattern.findall(b"\n" + self._page[begin:end]))
            else:
                self._lines.refuse(self._page[begin : begin + LONGEST_LABELS_BYTES])
            begin = end

    def found(self) -> Scan:
        """What was found as far as it was read."""
        return self._lines.found(is_bare=not self._page or self._page.isspace())


class _Lines:
    """The lines of a page, as far as they have been read."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._samples: dict[bytes, dict[bytes, float]] = {}
        self._count = 0
        self._label_bytes = 0
        self._malformed, self._first_malformed = 0, ""
        self._repeated, self._first_repeated = 0, ""

    @property
    def is_too_much(self) -> bool:
        return self._count > MOST_SAMPLES or self._label_bytes > MOST_LABEL_BYTES

    def take(self, lines: Iterable[tuple[bytes, ...]]) -> None:
        """Take in what `line_pattern` found."""
        for declared, name, labels, value, tail, damaged in lines:
            if self.is_too_much:
                return
            if declared:
                self._declare(name, value)
                continue
            self._count += 1
            self._label_bytes += len(labels)
            try:
                labels, number = _sample(labels, value, tail)
            except ValueError:
                self.refuse(b" ".join(filter(None, (name + labels, value + tail, damaged))))
                continue
            series = self._samples.get(name)
            if series is None:
                series = self._samples[name] = {}
            elif labels in series:
                self._repeated += 1
                self._first_repeated = self._first_repeated or _shown(name + labels)
            series[labels] = number

    def refuse(self, line: bytes) -> None:
        """Count a line that can't be read."""
        self._malformed += 1
        self._first_malformed = self._first_malformed or _shown(line)

    def found(self, *, is_bare: bool) -> Scan:
        samples = {} if self.is_too_much else self._samples
        return Scan(
            self._types,
            {name.decode(): series for name, series in samples.items()},
            self._malformed,
            self._first_malformed,
            self._repeated,
            self._first_repeated,
            is_bare,
            self.is_too_much,
        )

    def _declare(self, name: bytes, type_: bytes) -> None:
        word = type_.decode(errors="replace") if len(type_) < _LONGEST_WORD_BYTES else ""
        if word in _TYPES:
            self._types[name.decode()] = word


def _sample(labels: bytes, value: bytes, tail: bytes) -> tuple[bytes, float]:
    """Label text and value of a line; raises `ValueError` when it is malformed."""
    try:
        labels = read_labels(labels).text
    except ValueError:
        if len(labels) > LONGEST_LABELS_BYTES:
            raise
        exemplar = _EXEMPLAR.match(labels)  # its braces were taken for those of the labels
        if exemplar is None:
            raise
        labels, value, tail = read_labels(exemplar[1]).text, exemplar[2], b""
    if b"_" in value or len(value) > _LONGEST_WORD_BYTES:
        raise ValueError("digits cannot be grouped, and no number is that long")
    if tail and not _TAIL.fullmatch(tail):
        raise ValueError("neither a time stamp nor an exemplar")
    return labels, float(value)


def _shown(line: bytes) -> str:
    return shorten(line[:LONGEST_LABELS_BYTES].strip().decode(errors="replace"))
