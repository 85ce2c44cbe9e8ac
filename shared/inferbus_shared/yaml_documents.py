"""YAML as Kubernetes reads it: JSON values from YAML 1.1 text, with the line of every field.

Invariant: nothing is decided silently. A key that stands twice, a tag that JSON has no type for,
and numbers JSON can't write are errors. Times stay text and `22:22` is no number, as in Kubernetes;
words such as `yes` and `on` mean true there, so they do here.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

MAX_NODES = 200_000
"""Values in one document once its aliases are written out: stops aliases that multiply."""

MAX_DEPTH = 100

FieldPath = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_SURROGATES = re.compile("[\ud800-\udfff]")
_TRUE = frozenset({"yes", "true", "on"})
_BOOL = "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_INT = "[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)"
_FLOAT = (
    r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))"
    r"|\.(?:nan|NaN|NAN)"
)
_PLAIN_SCALARS = (
    ("bool", _BOOL, "yYnNtTfFoO"),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
)
"""(type, pattern, first characters) of text without quotes that isn't a string, in order."""

_REMEDIES = {
    "'\\t'": "indent with spaces, not with tabs",
    "mapping values are not allowed": "put a value that holds ': ' in quotes, or check the indent",
    "expected <block end>": "indent all items of a list or mapping alike",
    "undefined alias": "put a value that begins with * in quotes",
    "cannot start any token": "put a value that begins with this character in quotes",
}


class BrokenYamlError(Exception):
    """Text that isn't YAML, or YAML that JSON can't hold; line and column count from 1."""

    def __init__(self, message: str, line: int, column: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.remedy = remedy or "correct the document there"


class YamlSyntaxError(BrokenYamlError):
    """Text that isn't YAML at all."""


class YamlDocument(NamedTuple):
    """One document of a text."""

    value: Any
    line: int
    lines: dict[FieldPath, int]
    """Where each key and each item stands."""


class _Thorough(yaml.SafeLoader):
    """Written in Python; says what it expected when it fails."""


class _Fast(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Fifteen times as fast where libyaml is there."""


for _loader in (_Thorough, _Fast):
    _loader.yaml_implicit_resolvers = {}
    for _name, _pattern, _first in _PLAIN_SCALARS:
        _matcher = re.compile(rf"(?:{_pattern})\Z")
        _loader.add_implicit_resolver(f"{_TAG}{_name}", _matcher, list(_first))


def parse_documents(text: str) -> list[YamlDocument]:
    """The documents of a text, empty ones left out; raises `BrokenYamlError`."""
    return [
        _Construction().document(node)
        for node in _nodes(text)
        if not (isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null")
    ]


def _nodes(text: str) -> list[yaml.Node]:
    try:
        try:
            return list(yaml.compose_all(text, Loader=_Fast))
        except yaml.YAMLError:
            return list(yaml.compose_all(text, Loader=_Thorough))
    except yaml.MarkedYAMLError as error:
        raise _marked(error) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise YamlSyntaxError("there is a control character", line, column, "remove it") from None
    except RecursionError:
        raise YamlSyntaxError("the text is nested too deep", 1, 1) from None


def _marked(error: yaml.MarkedYAMLError) -> YamlSyntaxError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = error.problem or "this isn't YAML"
    remedy = next((told for sign, told in _REMEDIES.items() if sign in problem), "")
    begun = error.context_mark
    where = f", in what began on line {begun.line + 1}" if begun and begun.line + 1 < line else ""
    return YamlSyntaxError(
        f"{error.context}: {problem}{where}" if error.context else problem, line, column, remedy
    )


def _fault(node: yaml.Node, message: str, remedy: str = "") -> BrokenYamlError:
    mark = node.start_mark
    return BrokenYamlError(message, mark.line + 1, mark.column + 1, remedy)


class _Construction:
    """Makes the value of one document out of its nodes, and notes lines on the way."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {}
        self.nodes = 0

    def document(self, node: yaml.Node) -> YamlDocument:
        line = node.start_mark.line + 1
        self.lines[()] = line
        return YamlDocument(self._value(node, ()), line, self.lines)

    def _value(self, node: yaml.Node, path: FieldPath) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            message = f"the document is too large: aliases written out, over {MAX_NODES} values"
            raise _fault(node, message, "use fewer aliases, or several documents")
        if len(path) > MAX_DEPTH:
            message = f"the document is nested over {MAX_DEPTH} levels deep, or contains itself"
            raise _fault(
                node, message, "write deep values as JSON text; no alias inside its anchor"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(node, path)
        return _scalar(node)

    def _sequence(self, node: yaml.SequenceNode, path: FieldPath) -> list[Any]:
        _plain_tag(node, "seq")
        items = []
        for index, item in enumerate(node.value):
            self.lines[*path, index] = item.start_mark.line + 1
            items.append(self._value(item, (*path, index)))
        return items

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        _plain_tag(node, "map")
        value: dict[str, Any] = {}
        for merged in _merged(node):
            value |= self._mapping(merged, path)
        own: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            key = _key(key_node)
            if key in own:
                raise _fault(
                    key_node,
                    f"the key {key!r} stands here for the second time; "
                    f"the first is on line {self.lines[*path, key]}",
                    "keep one of them",
                )
            own.add(key)
            self.lines[*path, key] = key_node.start_mark.line + 1
            value[key] = self._value(value_node, (*path, key))
        return value


def _merged(node: yaml.MappingNode) -> Iterator[yaml.MappingNode]:
    """The mappings that `<<` takes over, the one that counts most last."""
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            several = isinstance(value_node, yaml.SequenceNode)
            for item in reversed(value_node.value) if several else (value_node,):
                if not isinstance(item, yaml.MappingNode):
                    raise _fault(item, "<< takes a mapping, or a list of mappings")
                yield item


def _plain_tag(node: yaml.Node, tag: str) -> None:
    if node.tag != f"{_TAG}{tag}":
        raise _fault(node, f"the tag {node.tag} has no meaning in JSON", "remove the tag")


def _key(node: yaml.Node) -> str:
    """Keys are text in JSON; numbers and booleans are written out, as Kubernetes does."""
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if value is None:
        raise _fault(
            node, "a key is a text, not null, a list or a mapping", "put the key in quotes"
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: yaml.Node) -> Any:
    kind, text = node.tag.removeprefix(_TAG), node.value
    try:
        return _READERS[kind](text)
    except KeyError:
        raise _fault(node, f"the tag {node.tag} has no meaning in JSON", "remove the tag") from None
    except ValueError as error:
        raise _fault(node, str(error), "correct the value, or put it in quotes") from None


def _text(text: str) -> str:
    """JSON writes characters beyond 16 bits as two escapes; half a pair is no character."""
    if not _SURROGATES.search(text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("an escape stands for half a character") from None


def _bool(text: str) -> bool:
    if re.fullmatch(_BOOL, text) is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in _TRUE


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    octal = re.fullmatch(r"[-+]?0[0-7]+", digits)
    return int(digits, 8) if octal else int(digits, 0)


def _float(text: str) -> float:
    number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(number):
        raise ValueError(f"JSON has no number {text}")
    return number


_READERS: dict[str, Callable[[str], Any]] = {
    "str": _text,
    "null": lambda _: None,
    "bool": _bool,
    "int": _integer,
    "float": _float,
    "timestamp": str,
}
