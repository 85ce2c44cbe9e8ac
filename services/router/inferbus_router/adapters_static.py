"""A routing table from a file, for tests, benchmarks and a router without a platform.

The file, JSON or YAML, maps keys (`ModelRoute/<namespace>/<name>`,
`ModelServer/<namespace>/<name>`; also HTTPRoute, InferencePool, Gateway and ExternalModelProvider)
to what the router-config-publisher would publish under them: a `RouteEntry`, a `ServerEntry` or a
`GatewayEntry`. Invariant: a file is taken whole or not at all.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inferbus_contracts.canonical import digest
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.route import (
    GatewayEntry,
    RouteEntry,
    RoutePublished,
    ServerEntry,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.table_digest import part_pair, table_digest
from inferbus_router.ports import TableSink

Entry = RouteEntry | ServerEntry | GatewayEntry

_ENTRIES: dict[str, type[Entry]] = {
    kinds.MODEL_ROUTE: RouteEntry,
    kinds.HTTP_ROUTE: RouteEntry,
    kinds.MODEL_SERVER: ServerEntry,
    kinds.INFERENCE_POOL: ServerEntry,
    kinds.EXTERNAL_MODEL_PROVIDER: ServerEntry,
    kinds.GATEWAY: GatewayEntry,
}


class StaticTable:
    """A `TableSource` that reads one file once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def run(self, sink: TableSink) -> None:
        """Feed the table; raises `ProblemsError` where the file can't be used."""
        sink.apply(published(read_table(self._path)))
        sink.snapshot_ended()


Entries = Mapping[ObjectKey, Entry]


def published(entries: Entries, revision: int = 1) -> list[tuple[ObjectKey, RoutePublished]]:
    """The messages that would publish these parts as one whole table."""
    digests = {key: digest(entry.to_dict()) for key, entry in entries.items()}
    whole = table_digest(part_pair(key, part) for key, part in digests.items())
    return [
        (
            key,
            RoutePublished(
                revision=revision,
                digest=digests[key],
                table_digest=whole,
                route=entry if isinstance(entry, RouteEntry) else None,
                server=entry if isinstance(entry, ServerEntry) else None,
                gateway=entry if isinstance(entry, GatewayEntry) else None,
            ),
        )
        for key, entry in entries.items()
    ]


def read_table(path: Path) -> dict[ObjectKey, Entry]:
    """The parts in a file; raises `ProblemsError` with every problem of it."""
    document = _read(path)
    entries: dict[ObjectKey, Entry] = {}
    problems: list[Problem] = []
    for name, value in document.items():
        try:
            key = ObjectKey.parse(str(name))
            entries[key] = _ENTRIES[key.kind].model_validate(value)
        except (ValueError, KeyError) as error:
            problems.append(_problem(path, str(name), error))
    if problems:
        raise ProblemsError(*problems)
    return entries


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except OSError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message=f"the routing table can't be read: {error.strerror}",
                file=str(path),
                remedy="set INFERBUS_ROUTER_TABLE_FILE to a JSON or YAML file of table parts",
            )
        ) from None
    document = _parse(path, text)
    if not isinstance(document, dict):
        raise ProblemsError(_broken(str(path), "it must be one mapping from keys to parts"))
    return document


def _parse(path: Path, text: str) -> Any:
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ProblemsError(_broken(f"{path}:{error.lineno}", error.msg)) from None
    # only tables in YAML need it, and it takes long to import
    from inferbus_shared.yaml_documents import BrokenYamlError, parse_documents

    try:
        documents = parse_documents(text)
    except BrokenYamlError as error:
        raise ProblemsError(_broken(f"{path}:{error.line}", error.message)) from None
    return documents[0].value if len(documents) == 1 else None


def _broken(place: str, message: str) -> Problem:
    return Problem(
        code=ErrorCode.BROKEN_YAML,
        message=message,
        file=place,
        remedy="correct the file",
    )


def _problem(path: Path, name: str, error: Exception) -> Problem:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        return Problem(
            code=ErrorCode.WRONG_TYPE,
            message=first["msg"],
            file=str(path),
            object=name,
            field=field,
            value=first.get("input"),
            remedy="correct the part",
        )
    return Problem(
        code=ErrorCode.BAD_NAME,
        message="this is no key of a table part",
        file=str(path),
        value=name,
        remedy=f"use {', '.join(f'{kind}/<namespace>/<name>' for kind in _ENTRIES)}",
    )
