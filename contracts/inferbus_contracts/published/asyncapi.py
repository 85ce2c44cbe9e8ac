"""AsyncAPI 3.0 documents: one for each service, from the channels it uses.

Invariant: every body that has a schema refers to it in the folder of schemas, and nothing refers to
a place outside the checked-in folders.
"""

from typing import Any

import inferbus_contracts
from inferbus_contracts.published.channels import Channel, Direction, Use, uses
from inferbus_contracts.published.messages import (
    CLOUD_EVENT_HEADERS,
    DEAD_LETTER,
    DEAD_LETTER_HEADERS,
    Message,
    event_headers,
)
from inferbus_contracts.services import Service

ASYNCAPI_VERSION = "3.0.0"
SCHEMAS = "../schemas/"
"""The folder of schemas, seen from the folder of documents."""

_TOKEN = (
    "One subject token: letters, digits, `-` and `_`; any other byte is `=` and two hex digits."
)
_PARAMETERS = {
    "kind": f"Kind of the key. {_TOKEN}",
    "namespace": f"Namespace of the key, `_` where there is none. {_TOKEN}",
    "name": f"Name of the key, with `/role` behind it for a role. {_TOKEN}",
    "partition": "Number of the partition that the key falls into, from 0.",
    "subject": "The subject where the event stood, as it is, several tokens.",
    "service": "Name of the service.",
    "instance": f"Name of the instance. {_TOKEN}",
    "entry": "Name of the entry.",
}
_QUEUE_BINDING_VERSION = "0.1.0"


def asyncapi_documents() -> dict[str, dict[str, Any]]:
    """Every document by file name; the provisioner, which says nothing of its own, has none."""
    return {
        f"{service.value}.json": asyncapi_document(service)
        for service in Service
        if service is not Service.PROVISIONER
    }


def asyncapi_document(service: Service) -> dict[str, Any]:
    """The document of one service."""
    found = uses(service)
    channels = {channel.id: channel for use in found for channel in _channels_of(use)}
    messages = {channel.message.id: channel.message for channel in channels.values()}
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": service.value,
            "version": inferbus_contracts.__version__,
            "description": f"What the {service.value} says and hears on the bus.",
        },
        "defaultContentType": "application/json",
        "servers": {"bus": _server(service)},
        "channels": {name: _channel(channel) for name, channel in channels.items()},
        "operations": {
            f"{use.direction.value}.{use.channel.id}": _operation(service, use) for use in found
        },
        "components": {
            "messages": {name: _message(message) for name, message in messages.items()},
            "schemas": {"cloudEvent": CLOUD_EVENT_HEADERS, "deadLetter": DEAD_LETTER_HEADERS},
            "securitySchemes": {"user": {"type": "userPassword"}},
        },
    }


def _server(service: Service) -> dict[str, Any]:
    return {
        "host": "{address}",
        "protocol": "nats",
        "description": f"NATS with JetStream; the user is {service.value}.",
        "variables": {
            "address": {
                "description": "Host and port, as in the setting INFERBUS_NATS_URL.",
                "default": "127.0.0.1:4222",
            }
        },
        "security": [{"$ref": "#/components/securitySchemes/user"}],
    }


def _channels_of(use: Use) -> tuple[Channel, ...]:
    return (use.channel,) if use.reply is None else (use.channel, use.reply)


def _channel(channel: Channel) -> dict[str, Any]:
    described: dict[str, Any] = {
        "address": channel.subject,
        "description": channel.description,
        "messages": {channel.message.id: {"$ref": f"#/components/messages/{channel.message.id}"}},
    }
    if channel.parameters:
        described["parameters"] = {
            name: {"description": _PARAMETERS[name]} for name in channel.parameters
        }
    if channel.streams:
        described["x-streams"] = list(channel.streams)
    return described


def _operation(service: Service, use: Use) -> dict[str, Any]:
    described: dict[str, Any] = {
        "action": use.direction.value,
        "channel": _channel_reference(use.channel),
        "messages": [_message_reference(use.channel)],
        "summary": use.channel.message.summary,
    }
    if use.reply is not None:
        described["reply"] = {
            "channel": _channel_reference(use.reply),
            "messages": [_message_reference(use.reply)],
        }
        if use.direction is Direction.RECEIVE:
            queue = {"queue": service.value, "bindingVersion": _QUEUE_BINDING_VERSION}
            described["bindings"] = {"nats": queue}
    return described


def _channel_reference(channel: Channel) -> dict[str, str]:
    return {"$ref": f"#/channels/{channel.id}"}


def _message_reference(channel: Channel) -> dict[str, str]:
    return {"$ref": f"#/channels/{channel.id}/messages/{channel.message.id}"}


def _message(message: Message) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": message.id,
        "summary": message.summary,
        "contentType": "application/json",
        "payload": {"$ref": f"{SCHEMAS}{message.schema}"} if message.schema else {"type": "object"},
    }
    if message.event is not None:
        common = {"$ref": "#/components/schemas/cloudEvent"}
        described["headers"] = {"type": "object", "allOf": [common, event_headers(message.event)]}
    elif message is DEAD_LETTER:
        described["headers"] = {"$ref": "#/components/schemas/deadLetter"}
    return described
