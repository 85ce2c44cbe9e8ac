"""Manifests: the objects in files that people write, with the line of every field.

Invariant: an object is given whole or not at all. Whatever is wrong with a file is told with its
name and line, and no part of the file is handed on.
"""

import codecs
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inferbus_contracts.admission.paths import split_path
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.kinds import DEFAULT_NAMESPACE, find_kind
from inferbus_shared.yaml_documents import (
    BrokenYamlError,
    FieldPath,
    YamlDocument,
    YamlSyntaxError,
    parse_documents,
)

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, kw_only=True)
class ManifestDocument:
    """One object of a manifest."""

    object: dict[str, Any]
    file: str
    """The file as the user named it."""
    line: int
    """Where the object begins, from 1."""
    lines: dict[FieldPath, int] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """`file:line` of the object; what admission should be given as its file."""
        return f"{self.file}:{self.line}"

    def line_of(self, path: str | None) -> int:
        """The line of a field such as `spec.rules[0].name`, or of the nearest thing around it."""
        parts = split_path(path) if path else ()
        while parts and parts not in self.lines:
            parts = parts[:-1]
        return self.lines.get(parts, self.line)

    def located(self, problem: Problem) -> Problem:
        """The problem, with the line of its field."""
        return problem.model_copy(update={"file": f"{self.file}:{self.line_of(problem.field)}"})


def read_manifests(text: str | bytes, file: str) -> list[ManifestDocument]:
    """The objects of a text, lists unfolded, in order.

    YAML with any number of documents, or JSON; a byte-order mark and CRLF are accepted. Raises
    `ProblemsError` for text that can't be read, documents that are no objects, and the same object
    twice.
    """
    documents = _read(text, file)
    _raise(repeated_objects(documents))
    return documents


def read_path(path: Path | str) -> list[ManifestDocument]:
    """The objects of a file, or of the manifests of a folder (`manifest_files`).

    Raises `ProblemsError` with the problems of all files, and where one object stands twice.
    """
    root = Path(path)
    documents: list[ManifestDocument] = []
    problems: list[Problem] = []
    for file in _listed(root):
        try:
            documents += _read(content_of(file), str(file))
        except ProblemsError as error:
            problems += error.problems
    _raise([*problems, *repeated_objects(documents)])
    return documents


def _listed(root: Path) -> list[Path]:
    try:
        return manifest_files(root)
    except OSError as error:
        raise ProblemsError(_unreadable("folder", Path(error.filename or root), error)) from None


def manifest_files(root: Path) -> list[Path]:
    """The manifests of a folder and its folders, in order of name, or the file itself.

    Files whose name, or a folder's on the way, begins with a dot are left out. Raises OSError when
    one of the folders can't be read: its files must not be taken for gone.
    """
    if not root.is_dir():
        return [root]
    found = []
    for folder, folders, files in os.walk(root, onerror=_raise_error):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (Path(folder, name) for name in files if not name.startswith("."))
        found += [file for file in visible if file.suffix in SUFFIXES and file.is_file()]
    return sorted(found)


def _raise_error(error: OSError) -> None:
    raise error


def locate(problems: Iterable[Problem], documents: Sequence[ManifestDocument]) -> list[Problem]:
    """Problems that name the place of one of the documents, each with the line of its field."""
    by_place = {document.place: document for document in documents}
    return [
        by_place[problem.file].located(problem) if problem.file in by_place else problem
        for problem in problems
    ]


def repeated_objects(documents: Iterable[ManifestDocument]) -> list[Problem]:
    """A problem for each object that an earlier document already defines."""
    first: dict[tuple[str, ...], ManifestDocument] = {}
    problems = []
    for document in documents:
        identity = _identity(document.object)
        if identity is None:
            continue
        earlier = first.setdefault(identity, document)
        if earlier is not document:
            problems.append(
                Problem(
                    code=ErrorCode.DUPLICATE_NAME,
                    message=f"the same object is already defined at {earlier.place}",
                    file=document.place,
                    object="/".join(identity[1:]),
                    remedy="keep one of the two, or give one another name",
                )
            )
    return problems


def _identity(document: dict[str, Any]) -> tuple[str, ...] | None:
    """(group, kind, namespace, name); None when it isn't complete, which admission tells."""
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    api_version, kind, name = document.get("apiVersion"), document.get("kind"), named.get("name")
    if not (isinstance(api_version, str) and isinstance(kind, str) and isinstance(name, str)):
        return None
    known = find_kind(api_version, kind)
    if known is not None:
        return (known.group, *known.key(name, _text(named.get("namespace")))[:3])
    group = api_version.rpartition("/")[0]
    return (group, kind, _text(named.get("namespace")) or DEFAULT_NAMESPACE, name)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _read(text: str | bytes, file: str) -> list[ManifestDocument]:
    documents = []
    problems = []
    for parsed in _parse(_decode(text, file), file):
        for value, lines in _unfold(parsed.value, parsed.lines):
            line = lines.get((), parsed.line)
            if isinstance(value, dict):
                documents.append(ManifestDocument(object=value, file=file, line=line, lines=lines))
            else:
                problems.append(_no_object(f"{file}:{line}"))
    _raise(problems)
    return documents


def _no_object(place: str) -> Problem:
    return Problem(
        code=ErrorCode.NOT_A_DOCUMENT,
        message="an object is a mapping, and this is something else",
        file=place,
        remedy="begin it with apiVersion and kind; separate objects with a line ---",
    )


def _decode(text: str | bytes, file: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    wide = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return text.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        broken = BrokenYamlError("the text isn't UTF-8", line, 1, "save the file as UTF-8")
        raise ProblemsError(_broken(broken, file)) from None


def _parse(text: str, file: str) -> list[YamlDocument]:
    try:
        return parse_documents(text)
    except YamlSyntaxError as error:
        if text.lstrip().startswith(("{", "[")):
            return _parse_json(text, file, error)
        raise ProblemsError(_broken(error, file)) from None
    except BrokenYamlError as error:
        raise ProblemsError(_broken(error, file)) from None


def _parse_json(text: str, file: str, yaml_error: BrokenYamlError) -> list[YamlDocument]:
    """JSON that isn't YAML too, e.g. with very long keys; lines of its fields aren't known."""
    line = text[: len(text) - len(text.lstrip())].count("\n") + 1
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        broken = BrokenYamlError(f"this isn't JSON: {error.msg}", error.lineno, error.colno)
        likelier = broken if file.endswith(".json") else yaml_error
        raise ProblemsError(_broken(likelier, file)) from None
    except (ValueError, RecursionError) as error:
        raise ProblemsError(_broken(BrokenYamlError(str(error), line, 1), file)) from None
    return [YamlDocument(value, line, {(): line})]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"the key {key!r} stands in a mapping for the second time")
        value[key] = item
    return value


def _no_number(text: str) -> Any:
    raise ValueError(f"JSON has no number {text}")


def _broken(error: BrokenYamlError, file: str) -> Problem:
    return Problem(
        code=ErrorCode.BROKEN_YAML,
        message=f"{error.message} (column {error.column})",
        file=f"{file}:{error.line}",
        remedy=error.remedy,
    )


def _unfold(value: Any, lines: dict[FieldPath, int]) -> Iterator[tuple[Any, dict[FieldPath, int]]]:
    """The items of a `List` or `<Kind>List`, or the value itself.

    Items of a `<Kind>List` may leave out apiVersion and kind, as the API server does.
    """
    if not _is_list(value):
        yield value, lines
        return
    by_item: dict[int, dict[FieldPath, int]] = {}
    for path, line in lines.items():
        if len(path) > 1 and path[0] == "items" and isinstance(path[1], int):
            by_item.setdefault(path[1], {})[path[2:]] = line
    for index, item in enumerate(value["items"]):
        yield from _unfold(_with_identity(item, value), by_item.get(index, {(): lines[()]}))


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("items"), list):
        return False
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List")


def _with_identity(item: Any, around: dict[str, Any]) -> Any:
    kind = around["kind"].removesuffix("List")
    if not kind or not isinstance(item, dict):
        return item
    return {"apiVersion": around.get("apiVersion"), "kind": kind} | item


def content_of(file: Path) -> bytes:
    """What stands in a file; raises `ProblemsError` when it can't be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ProblemsError(_unreadable("file", file, error)) from None


def _unreadable(what: str, path: Path, error: OSError) -> Problem:
    denied = isinstance(error, PermissionError)
    return Problem(
        code=ErrorCode.PERMISSION_DENIED if denied else ErrorCode.BAD_ARGUMENT,
        message=f"the {what} can't be read: {error.strerror}",
        file=str(path),
        remedy="check the path and its permissions",
    )


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise ProblemsError(*problems)
