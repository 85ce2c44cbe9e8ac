"""`python -m inferbus_contracts.add_golden <name>`: writes a golden document, once.

Reads a manifest as JSON, or with `--type` the body of an event, from standard input. What is there
already is never written again: a golden document is kept as it was.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inferbus_contracts.admission import admit
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import Envelope, event_id
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.published.command import run_command
from inferbus_contracts.published.documents import as_text
from inferbus_contracts.published.files import CONTRACTS, write_tree
from inferbus_contracts.published.golden import (
    BODY,
    HEADERS,
    as_file,
    event_folder,
    object_folder,
)
from inferbus_contracts.published.releases import GOLDEN
from inferbus_contracts.published.schemas import EVENT_VERSION

GOLDEN_TIME_MS = 1_769_860_800_123
"""When golden events happened; milliseconds since 1970."""


def golden_event(event_type: str, name: str, key: str, cause: str, body: bytes) -> dict[str, bytes]:
    """The files of a golden event; raises `ProblemsError` when something doesn't fit.

    `key` is what the event is about, `cause` the id of the event it follows from, empty for none.
    """
    event = EVENTS[event_type]
    try:
        data, about = event.data.from_json(body), ObjectKey.parse(key)
    except ValidationError as error:
        raise ProblemsError(_bad(f"the body is no {event_type}: {error}")) from None
    except ValueError as error:
        raise ProblemsError(_bad(str(error))) from None
    envelope = Envelope(
        id=event_id(event_type, about, cause),
        type=event_type,
        source=f"{event.writer.value}/1",
        time_ms=GOLDEN_TIME_MS,
        key=about,
        correlation_id=cause,
        causation_id=cause,
        version=EVENT_VERSION,
    )
    path = f"{GOLDEN}{event_folder(event_type)}/{name}"
    return {path + BODY: as_file(data.to_json()), path + HEADERS: as_text(envelope.headers())}


def golden_object(name: str, document: Mapping[str, Any]) -> dict[str, bytes]:
    """The file of a golden object, normalised; raises `ProblemsError` when it isn't admitted."""
    admitted = admit(document)
    path = f"{GOLDEN}{object_folder(admitted.kind.token)}/{name}{BODY}"
    return {path: as_file(canonical_json(admitted.object))}


def add(folder: Path, files: Mapping[str, bytes]) -> str:
    """Write files that aren't there yet; raises `ProblemsError` when one is."""
    for path in files:
        if (folder / path).exists():
            raise ProblemsError(
                Problem(
                    code=ErrorCode.ALREADY_EXISTS,
                    message="a golden document is written once",
                    file=path,
                    remedy="choose another name",
                )
            )
    write_tree(folder, files)
    return "\n".join(f"wrote {path}" for path in files)


def _bad(message: str) -> Problem:
    remedy = "see python -m inferbus_contracts.add_golden --help"
    return Problem(code=ErrorCode.BAD_ARGUMENT, message=message, remedy=remedy)


def main(words: Sequence[str], body: bytes, folder: Path) -> int:
    """The command with its arguments and standard input; the exit status."""
    parser = argparse.ArgumentParser(description="Write a golden document, once.")
    parser.add_argument("name", help="minimal, full, or what it shows")
    parser.add_argument("--type", help="type of an event, e.g. scaling.decided; else an object")
    parser.add_argument("--key", default="", help="key of the event, kind/namespace/name[/role]")
    parser.add_argument("--cause", default="", help="id of the event it follows from")
    arguments = parser.parse_args(words)
    return run_command(lambda: add(folder, _files(arguments, body)))


def _files(arguments: argparse.Namespace, body: bytes) -> dict[str, bytes]:
    if arguments.type in EVENTS:
        return golden_event(arguments.type, arguments.name, arguments.key, arguments.cause, body)
    if arguments.type is not None:
        raise ProblemsError(_bad(f"there is no event type {arguments.type}"))
    try:
        document = json.loads(body)
    except ValueError as error:
        raise ProblemsError(_bad(f"standard input is no JSON: {error}")) from None
    return golden_object(arguments.name, document)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer.read(), CONTRACTS))
