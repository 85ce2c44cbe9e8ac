"""`inferbus describe`: one object, its children, and what happened to it."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from inferbus_cli.descriptions import INTERESTING, Description, concerns
from inferbus_cli.documents import as_json, at
from inferbus_cli.history import Part
from inferbus_cli.kind_words import keys_named, kind_named
from inferbus_cli.options import Duration, dir_option, namespace_option, output_option
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.session import Session, on_bus
from inferbus_cli.targets import TargetFilter
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import Stream
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import KINDS, POD
from inferbus_shared.bus.messages import Received

DEFAULT_SINCE_SECONDS = 24 * 3600.0
DEFAULT_EVENTS = 20


@command_with_examples(
    "describe",
    "inferbus describe modelserving my-model",
    "inferbus describe pod/my-model-0-main-0-0 --since 10m",
    "inferbus describe modelroute my-model -n team-a -o json",
)
@click.argument("words", nargs=-1, required=True, metavar="KIND NAME")
@namespace_option
@click.option(
    "--since",
    "since_seconds",
    type=Duration(),
    default=DEFAULT_SINCE_SECONDS,
    metavar="TIME",
    help="How far back events are looked for; 24h unless given.",
)
@click.option(
    "--events",
    "most_events",
    type=click.IntRange(min=0),
    default=DEFAULT_EVENTS,
    metavar="N",
    help="The last N events; 20 unless given.",
)
@output_option("json")
@dir_option
def command(
    words: Sequence[str],
    namespace: str | None,
    since_seconds: float,
    most_events: int,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Show an object with its conditions, children, and the events about it with their causes.

    An object that is gone, or was refused, is shown by its events alone.
    """
    keys = keys_named(words, namespace)

    async def work(session: Session) -> None:
        for key in keys:
            async with progress(f"reading about {key}"):
                found = await _describe(session, key, since_seconds, most_events)
            sys.stdout.write(as_json(_as_document(found)) if output else found.text())

    on_bus(directory, work)


async def _describe(
    session: Session, key: ObjectKey, since_seconds: float, most_events: int
) -> Description:
    document: dict[str, Any] | None
    try:
        document = await session.objects.get(key)
    except ProblemsError as error:
        events = await _events(session, key, None, since_seconds)
        if error.problems[0].code is not ErrorCode.NOT_FOUND or not events:
            raise
        document = _gone(key)
    else:
        events = await _events(session, key, document, since_seconds)
    return Description(
        object=document,
        children=await _children(session, document),
        events=events[-most_events:] if most_events else [],
        now_ms=session.now_ms,
    )


def _gone(key: ObjectKey) -> dict[str, Any]:
    kind = kind_named(key.kind)
    metadata = {"name": key.name, "namespace": key.namespace, "uid": "(gone, or never stored)"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


async def _children(session: Session, document: dict[str, Any]) -> list[dict[str, Any]]:
    uid = document["metadata"]["uid"]
    return [child for kind in KINDS for child in await session.objects.find(kind, owner_uid=uid)]


async def _events(
    session: Session, key: ObjectKey, document: dict[str, Any] | None, since_seconds: float
) -> list[Received[EventData]]:
    """Events about the object; about a pod its workload's, as far as they concern it."""
    owner = _workload_of(document) if key.kind == POD and document else None
    part = Part(
        streams=(str(Stream.FACTS), str(Stream.DECISIONS)),
        target=TargetFilter.of(owner or key),
    ).last(session.now_ms, since_seconds)
    return [
        read.event
        async for read in part.read(session.bus)
        if read.event is not None
        and read.event.envelope.type in INTERESTING
        and (owner is None or concerns(read.event, str(key)))
    ]


def _workload_of(document: dict[str, Any]) -> ObjectKey | None:
    for owner in at(document, "metadata.ownerReferences") or ():
        namespace = document["metadata"].get("namespace")
        return kind_named(str(owner["kind"])).key(str(owner["name"]), namespace)
    return None


def _as_document(found: Description) -> dict[str, Any]:
    return {
        "object": dict(found.object),
        "children": [dict(child) for child in found.children],
        "events": [
            {
                "id": event.id,
                "type": event.envelope.type,
                "timeMs": event.time_ms,
                "key": str(event.key),
                "causationId": event.envelope.causation_id,
                "data": event.data.to_dict(),
            }
            for event in found.events
        ],
    }
