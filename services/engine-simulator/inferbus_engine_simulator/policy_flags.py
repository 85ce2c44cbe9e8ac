"""Reading the flags of a program that isn't ours.

A table names the flags that matter. Flags outside the table are kept with their values and
ignored, because engines have hundreds of them and get new ones with every release; a value that a
known flag can't have is an error, as it is in the engine itself.

Invariant: every word of the command line ends up in exactly one of values, positionals, ignored.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError


class Arity(Enum):
    """How many words follow a flag."""

    NONE = "none"
    ONE = "one"
    MANY = "many"


class Flag(NamedTuple):
    """A flag that matters."""

    field: str
    """What it sets."""
    names: tuple[str, ...]
    convert: Callable[[str], Any] = str
    """From a word to the value; raises ValueError with what is expected."""
    arity: Arity = Arity.ONE
    constant: Any = True
    """What a flag without words sets."""


class IgnoredFlag(NamedTuple):
    """A flag that isn't in the table."""

    flag: str
    values: tuple[str, ...]
    hint: str = ""
    """The known flag that it looks like, if it does."""


class ParsedFlags(NamedTuple):
    """A command line, sorted."""

    values: dict[str, Any]
    """By field; lists for flags with many words."""
    positionals: list[str]
    ignored: list[IgnoredFlag]


def parse_flags(
    words: Sequence[str], table: Iterable[Flag], switches: Iterable[str] = ()
) -> ParsedFlags:
    """Sort the words after the program's name.

    `switches` are flags outside the table that are known to take no value. Underscores in flags
    count as dashes. Raises `ProblemsError` with one problem per bad value.
    """
    known = {name: flag for flag in table for name in flag.names}
    parser = _Parser(known, frozenset(switches))
    parser.read(list(words))
    if parser.problems:
        raise ProblemsError(*parser.problems)
    return ParsedFlags(parser.values, parser.positionals, parser.ignored)


class _Parser:
    def __init__(self, known: dict[str, Flag], switches: frozenset[str]) -> None:
        self.known = known
        self.switches = switches
        self.values: dict[str, Any] = {}
        self.positionals: list[str] = []
        self.ignored: list[IgnoredFlag] = []
        self.problems: list[Problem] = []

    def read(self, words: list[str]) -> None:
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            if not is_flag(word):
                self.positionals.append(word)
                continue
            written, equals, attached = word.partition("=")
            name = _normal(written)
            follow = [attached] if equals else _values_after(words, index)
            flag = self.known.get(name)
            if flag is None:
                used = 0 if equals or name in self.switches else len(follow)
                kept = follow if equals or used else []
                self.ignored.append(IgnoredFlag(written, tuple(kept), self._hint(written)))
            else:
                used = self._take(flag, written, follow)
            index += 0 if equals else used

    def _take(self, flag: Flag, written: str, follow: list[str]) -> int:
        """Set the flag's field; answers how many words it used."""
        if flag.arity is Arity.NONE:
            stated = follow[:1] and follow[0].lower() in ("true", "false")
            wanted = not stated or follow[0].lower() == "true"
            self.values[flag.field] = flag.constant if wanted else not flag.constant
            return 1 if stated else 0
        taken = follow if flag.arity is Arity.MANY else follow[:1]
        if not taken:
            self._complain(written, None, "a value")
            return 0
        converted = [self._convert(flag, written, word) for word in taken]
        self.values[flag.field] = converted if flag.arity is Arity.MANY else converted[0]
        return len(taken)

    def _convert(self, flag: Flag, written: str, word: str) -> Any:
        try:
            return flag.convert(word)
        except ValueError as error:
            self._complain(written, word, str(error))
            return None

    def _complain(self, written: str, value: str | None, expected: str) -> None:
        self.problems.append(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=f"the flag needs {expected}",
                field=written,
                value=value,
                remedy="correct the value in the container's command or args",
            )
        )

    def _hint(self, written: str) -> str:
        kebab = re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", written).lower()
        return kebab if kebab != written and kebab in self.known else ""


def is_flag(word: str) -> bool:
    """Whether a word is a flag and no value: it starts with a dash and is no number."""
    return re.match(r"--?[A-Za-z]", word) is not None


def _normal(written: str) -> str:
    head = re.match(r"-+", written)
    dashes = head[0] if head else ""
    return dashes + written[len(dashes) :].replace("_", "-")


def _values_after(words: list[str], index: int) -> list[str]:
    values = []
    for word in words[index:]:
        if is_flag(word):
            break
        values.append(word)
    return values


def integer(minimum: int) -> Callable[[str], int]:
    """A converter for whole numbers of at least `minimum`."""

    def convert(word: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", word) or int(word) < minimum:
            raise ValueError(f"a whole number of at least {minimum}")
        return int(word)

    return convert


def token_count(word: str) -> int | None:
    """vLLM's human-readable counts: `8192`, `32k` (thousands), `1K` (1,024s); `auto`, -1: None."""
    if word in ("auto", "-1"):
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", word)
    if match is None or ("." in match[1] and not match[2]):
        raise ValueError("a number of tokens such as 8192, 32k or auto")
    scale = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
    count = round(float(match[1]) * scale[match[2]])
    if count < 1:
        raise ValueError("a number of tokens of at least 1")
    return count


def fraction(word: str) -> float:
    """A number above 0 and up to 1."""
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ValueError("a number above 0 and up to 1")
    return value


def port(word: str) -> int:
    """A TCP port."""
    if not re.fullmatch(r"\d+", word) or not 1 <= int(word) <= 65535:
        raise ValueError("a port from 1 to 65535")
    return int(word)


def json_object(word: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(word)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value
