"""A spec-watcher in this process on a real server, and its users' questions to it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from inferbus_contracts.api.objects import (
    AppliedDocument,
    ApplyReply,
    ApplyRequest,
    DeleteReply,
    DeleteRequest,
    GetRequest,
    ListReply,
    ListRequest,
    ObjectReply,
    ObjectVerb,
    object_subject,
)
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.subjects import wildcard
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from inferbus_spec_watcher.main import serve
from inferbus_spec_watcher.settings import SpecWatcherSettings
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.services import running_service

Document = dict[str, Any]

INTERVAL_SECONDS = 0.05
"""Between two looks at the folder."""


@contextlib.asynccontextmanager
async def spec_watcher(
    server: NatsServer,
    instance: str = "w",
    *,
    folder: Path | None = None,
    secrets: Path | None = None,
) -> AsyncIterator[None]:
    """One running instance."""
    settings = SpecWatcherSettings(
        folder=folder, folder_interval_seconds=INTERVAL_SECONDS, secrets=secrets
    )
    async with running_service(server, serve, settings, instance):
        yield


async def apply(bus: Bus, *objects: Document, manager: str = "cli", **options: Any) -> ApplyReply:
    """Apply objects as one unit."""
    documents = [AppliedDocument(object=item, file="test.yaml") for item in objects]
    request = ApplyRequest(documents=documents, manager=manager, **options)
    return await bus.ask(object_subject(ObjectVerb.APPLY), request, ApplyReply)


async def find(bus: Bus, key: str) -> Document | None:
    """The object of a key; None where there is none."""
    try:
        reply = await bus.ask(object_subject(ObjectVerb.GET), GetRequest(key=key), ObjectReply)
    except ProblemsError as error:
        if error.problems[0].code is not ErrorCode.NOT_FOUND:
            raise
        return None
    return reply.object


async def there(bus: Bus, *keys: str) -> list[Document]:
    """The objects of these keys, once all are there."""

    async def all_there() -> list[Document] | None:
        found = [await find(bus, key) for key in keys]
        present = [one for one in found if one is not None]
        return present if len(present) == len(keys) else None

    found = await eventually(all_there, what=f"there are {keys}")
    assert found is not None
    return found


async def gone(bus: Bus, *keys: str) -> None:
    """Returns once none of these is there."""

    async def all_gone() -> bool:
        return [await find(bus, key) for key in keys] == [None] * len(keys)

    await eventually(all_gone, what=f"gone are {keys}")


async def delete(bus: Bus, key: str) -> None:
    """Delete an object."""
    await bus.ask(object_subject(ObjectVerb.DELETE), DeleteRequest(key=key), DeleteReply)


async def listed(bus: Bus, kind: str) -> list[Document]:
    """All objects of a kind."""
    return (
        await bus.ask(object_subject(ObjectVerb.LIST), ListRequest(kind=kind), ListReply)
    ).objects


def conditions(document: Document) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    told = (document.get("status") or {}).get("conditions") or ()
    return {one["type"]: (one["status"], one["reason"]) for one in told}


async def saying(bus: Bus, key: str, **wanted: tuple[str, str]) -> Document:
    """The object, once these conditions stand in its status."""
    last: Document = {}

    async def says() -> Document | None:
        nonlocal last
        last = await find(bus, key) or {}
        return last if wanted.items() <= conditions(last).items() else None

    found = await eventually(says, what=lambda: f"{key} says {wanted}, not {conditions(last)}")
    assert found is not None
    return found


async def subjects(server: NatsServer, event_type: str, stream: str = "FACTS") -> dict[str, int]:
    """How many events of a type stand on each subject."""
    async with server.connection() as connection:
        about = {"subjects_filter": wildcard(event_type, "*")}
        info = await api(connection, f"STREAM.INFO.{stream}", about)
        return dict(info["state"].get("subjects") or {})


async def last_sequence(server: NatsServer, stream: str) -> int:
    """Grows with every message of a stream."""
    async with server.connection() as connection:
        return int((await api(connection, f"STREAM.INFO.{stream}"))["state"]["last_seq"])


def write(file: Path, *documents: Document) -> None:
    """Write a manifest at once, as editors do."""
    temporary = file.with_suffix(".new")
    temporary.write_text(yaml.safe_dump_all(documents))
    temporary.replace(file)
