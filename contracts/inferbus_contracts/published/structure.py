"""Whether an AsyncAPI document holds together: the rules of version 3.0 that ours could break.

Pure. The full grammar is the specification's own parser's to check; this one needs no network and
knows what that parser can't, namely that every body refers to a schema that is checked in.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from inferbus_contracts.published.asyncapi import ASYNCAPI_VERSION, SCHEMAS
from inferbus_contracts.published.channels import Direction

_PARAMETER = re.compile(r"\{(\w+)\}")


def structure_faults(document: Mapping[str, Any], schemas: Collection[str]) -> list[str]:
    """What is wrong, one line each; `schemas` are the paths that bodies may refer to."""
    return [
        *_head(document),
        *_references(document, document, schemas, "#"),
        *_channels(document),
        *_operations(document),
    ]


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("asyncapi") != ASYNCAPI_VERSION:
        yield f"asyncapi is {document.get('asyncapi')!r}, not {ASYNCAPI_VERSION!r}"
    for name in ("title", "version"):
        if not document.get("info", {}).get(name):
            yield f"info.{name} is missing"


def _references(
    document: Mapping[str, Any], node: Any, schemas: Collection[str], path: str
) -> Iterator[str]:
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _references(document, item, schemas, f"{path}/{index}")
    if not isinstance(node, dict):
        return
    target = node.get("$ref")
    if isinstance(target, str) and not _found(document, target, schemas):
        yield f"{path} refers to {target}, which isn't there"
    for name, value in node.items():
        yield from _references(document, value, schemas, f"{path}/{name}")


def _found(document: Mapping[str, Any], target: str, schemas: Collection[str]) -> bool:
    if not target.startswith("#/"):
        return target.startswith(SCHEMAS) and target.removeprefix(SCHEMAS) in schemas
    place: Any = document
    for part in target.removeprefix("#/").split("/"):
        if not isinstance(place, dict) or part not in place:
            return False
        place = place[part]
    return True


def _channels(document: Mapping[str, Any]) -> Iterator[str]:
    for name, channel in document.get("channels", {}).items():
        address = channel.get("address") or ""
        wanted, declared = set(_PARAMETER.findall(address)), set(channel.get("parameters", {}))
        for parameter in sorted(wanted ^ declared):
            where = "address" if parameter in wanted else "parameters"
            yield f"channel {name}: {parameter} stands in {where} alone"
        if not channel.get("messages"):
            yield f"channel {name} has no message"
        if not any(target == f"#/channels/{name}" for target in _used_channels(document)):
            yield f"channel {name} is used by no operation"


def _used_channels(document: Mapping[str, Any]) -> Iterator[str]:
    for operation in document.get("operations", {}).values():
        for end in (operation, operation.get("reply", {})):
            yield end.get("channel", {}).get("$ref", "")


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    for name, operation in document.get("operations", {}).items():
        if operation.get("action") not in set(Direction):
            yield f"operation {name}: action is {operation.get('action')!r}, not send or receive"
        for end in (operation, *([operation["reply"]] if "reply" in operation else [])):
            channel = end.get("channel", {}).get("$ref", "")
            if not channel.startswith("#/channels/"):
                yield f"operation {name} names no channel"
            for message in end.get("messages", ()):
                if not message.get("$ref", "").startswith(f"{channel}/messages/"):
                    yield f"operation {name}: {message.get('$ref')} is no message of {channel}"
