"""Whether what one version writes is read by the other: two schemas, and every place they part.

Pure. Documents that stand in the log, and replies, are judged both ways: a reader may be older or
newer than the writer, and nobody is there to be told. Requests and resources are judged one way,
the newer reads the older: who reads them is upgraded before who writes them, and a refusal reaches
the one who wrote. Docstrings never matter.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferbus_contracts.published.references import Schema, resolved

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_FORMS = ("pattern", "format")
_ANYTHING: Schema = {}
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def breaking_changes(old: Mapping[str, Schema], new: Mapping[str, Schema]) -> list[str]:
    """Every way in which the schemas of a release no longer fit the present ones, by path.

    Both are keyed by path below the folder of schemas. An added file, an added optional field and
    a changed text are no change in this sense.
    """
    found: list[str] = []
    for path, schema in sorted(old.items()):
        if path not in new:
            found.append(
                f"{path}: is gone, and what it describes still stands in logs and manifests"
            )
            continue
        found += (f"{path}: {text}" for text in _Reading(schema, new[path], newer=True).misread())
        if judged_both_ways(path):
            reading = _Reading(new[path], schema, newer=False)
            found += (f"{path}: {text}" for text in reading.misread())
    return found


def judged_both_ways(path: str) -> bool:
    """Whether older readers must understand newer writers too."""
    return path.startswith("events/") or path.endswith(".reply.json")


class _Reading:
    """What a writer of one schema says, as a reader of the other understands it."""

    def __init__(self, writer: Schema, reader: Schema, *, newer: bool) -> None:
        """`newer` tells whether the reader is the newer one of the two."""
        self._writer = writer
        self._reader = reader
        self._newer = newer
        self._side = "new readers" if newer else "old readers"
        self._seen: set[tuple[int, int]] = set()

    def misread(self) -> Iterator[str]:
        """Each place with what is wrong there."""
        return self._compare(self._writer, self._reader, "")

    def _compare(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        if self._newer and writer.get("default") != reader.get("default"):
            before, after = writer.get("default"), reader.get("default")
            yield self._told(path, f"default was {before!r} and is {after!r}")
        written, read = resolved(self._writer, writer), resolved(self._reader, reader)
        if (id(written), id(read)) in self._seen:
            return
        self._seen.add((id(written), id(read)))
        readable = {_shape(branch): branch for branch in self._branches(self._reader, read)}
        for branch in self._branches(self._writer, written):
            shape = _shape(branch)
            match = readable.get(shape) or readable.get("any")
            if match is None and shape == "integer":
                match = readable.get("number")
            if match is None:
                known = ", ".join(sorted(readable))
                yield self._told(path, f"{self._side} take {known}, not {shape}")
            else:
                yield from self._compare_values(branch, match, path)

    def _branches(self, root: Schema, schema: Schema) -> list[Schema]:
        return [resolved(root, branch) for branch in schema.get("anyOf", (schema,))]

    def _compare_values(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        yield from self._words(writer, reader, path)
        yield from self._bounds(writer, reader, path)
        yield from self._fields(writer, reader, path)
        yield from self._other_fields(writer, reader, path)
        if "items" in reader:
            yield from self._compare(writer.get("items", _ANYTHING), reader["items"], f"{path}[]")

    def _words(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        read, written = _words(reader), _words(writer)
        if read is None:
            return
        if written is None:
            yield self._told(path, f"{self._side} take certain values only")
            return
        for value in written:
            if value not in read:
                yield self._told(path, f"{self._side} refuse the value {value!r}")

    def _bounds(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        for name in (*_LOWER_BOUNDS, *_UPPER_BOUNDS):
            limit, written = reader.get(name), writer.get(name)
            if limit is None:
                continue
            outside = written is None or (
                written < limit if name in _LOWER_BOUNDS else written > limit
            )
            if outside:
                yield self._told(path, f"{self._side} have {name} {limit}, writers {written}")
        for name in _FORMS:
            if reader.get(name) not in (None, writer.get(name)):
                yield self._told(path, f"{self._side} demand another {name}")

    def _fields(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        written, read = writer.get("properties", {}), reader.get("properties", {})
        for name in sorted(set(reader.get("required", ())) - set(writer.get("required", ()))):
            yield self._told(f"{path}.{name}", f"{self._side} require it")
        others = reader.get("additionalProperties", True)
        for name, schema in written.items():
            place = f"{path}.{name}"
            if name in read:
                yield from self._compare(schema, read[name], place)
            elif others is False:
                yield self._told(place, f"{self._side} refuse it")
            elif isinstance(others, dict):
                yield from self._compare(schema, others, place)
            elif self._newer and "properties" in reader:
                yield self._told(place, "is gone: new readers miss it")

    def _other_fields(self, writer: Schema, reader: Schema, path: str) -> Iterator[str]:
        written = writer.get("additionalProperties", False)
        read = reader.get("additionalProperties", True)
        if written is False or read is True:
            return
        if read is False:
            yield self._told(f"{path}.*", f"{self._side} refuse other fields")
        else:
            yield from self._compare(_ANYTHING if written is True else written, read, f"{path}.*")

    def _told(self, path: str, what: str) -> str:
        return f"{path.removeprefix('.') or 'the document'}: {what}"


def _shape(schema: Schema) -> str:
    """The JSON type that a schema without branches describes; `any` when it describes nothing."""
    words = _words(schema)
    named = schema.get("type") or (_JSON_TYPES.get(type(words[0])) if words else None)
    return str(named or "any")


def _words(schema: Schema) -> list[Any] | None:
    """The only values possible; None when there is no such list."""
    return [schema["const"]] if "const" in schema else schema.get("enum")
