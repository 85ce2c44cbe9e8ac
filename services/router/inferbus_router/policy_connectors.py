"""What a prefill and a decode endpoint are told, so that the first computes the prompt of a request
and the second, with the key-value cache of the first, its answer.

One pure function for each way the cache travels (routing spec 4.2 and 4.3): the client's body in,
the two bodies out. Invariant: but for the members that these functions name, both endpoints get the
client's body byte for byte, and the client's own body is never changed.
"""

import json
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from inferbus_contracts.events.route import ServerEntry
from inferbus_router.json_members import JsonMembers
from inferbus_router.json_spans import item_spans

MOST_TRANSFER_BYTES = 4 * 1024 * 1024
"""The longest prefill answer that is kept to find out where its blocks are."""

_STREAMING = ("stream", "stream_options")
_LEAST_LENGTH = "min_tokens"
"""Engines refuse a lower limit above the upper one."""
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TRANSFER = "kv_transfer_params"
_ASKS_FOR_PREFILL = b'{"do_remote_decode":true,"do_remote_prefill":false}'
_BATCH_MEMBER = "prompt"
_SGLANG = "sglang"


class Connector(StrEnum):
    """How the key-value cache gets from prefill to decode."""

    HTTP = "http"
    """By itself, or not at all: decode finds it in a store that both share."""
    LMCACHE = "lmcache"
    NIXL = "nixl"
    """Decode fetches it from where prefill's answer says."""
    MOONCAKE = "mooncake"
    SGLANG = "sglang"
    """Both meet in a room that they were told."""

    @property
    def sends_both_at_once(self) -> bool:
        """Prefill waits for decode as much as decode for prefill."""
        return self is Connector.SGLANG

    @property
    def needs_answer(self) -> bool:
        """Decode has to be told what prefill answered."""
        return self in (Connector.NIXL, Connector.MOONCAKE)

    @property
    def decode_can_be_alone(self) -> bool:
        """A decode endpoint computes prompts too when nobody did it for it."""
        return self is not Connector.SGLANG


def connector_of(declared: str | None, engine: str) -> Connector:
    """The connector of a model server, by its `kvConnector.type` and its engine.

    SGLang's halves know no other way than their rooms: there `http`, which is also what an empty
    `kvConnector` becomes, can't be meant (defect 21); `lmcache` says that they share a store. A
    type that isn't known passes the request on plainly, as `http` does.
    """
    if declared in (None, Connector.HTTP) and engine.lower() == _SGLANG:
        return Connector.SGLANG
    return Connector(declared) if declared in list(Connector) else Connector.HTTP


class Disaggregation(NamedTuple):
    """How a model server splits its requests."""

    connector: Connector
    prefill_min_tokens: int
    """Shorter prompts go to decode alone; 0: none."""
    bootstrap_port: int | None
    """Where SGLang's halves meet; None: where the decode engine expects it."""


def disaggregation_of(entry: ServerEntry) -> Disaggregation | None:
    """How it splits them; None where no endpoint has a role."""
    if not any(endpoint.role for endpoint in entry.endpoints):
        return None
    return Disaggregation(
        connector_of(entry.kv_connector, entry.engine),
        entry.prefill_min_tokens or 0,
        entry.bootstrap_port,
    )


class Room(NamedTuple):
    """Where two halves of SGLang meet for one attempt of one request."""

    number: int
    """From 0 to 2**63 - 1; another for each attempt."""
    host: str
    """Of the prefill endpoint."""
    port: int | None


class Bodies(NamedTuple):
    """What to send."""

    prefill: bytes
    decode: bytes
    """Where the connector needs the prefill's answer, `with_transfer` completes it."""


def http_bodies(body: JsonMembers) -> Bodies:
    """`http` and `lmcache`: prefill computes one token that nobody reads."""
    return Bodies(_prefill(body, {}), body.raw)


def nixl_bodies(body: JsonMembers) -> Bodies:
    """`nixl` and `mooncake`: prefill is told to keep its blocks for another engine."""
    return Bodies(_prefill(body, {_TRANSFER: _ASKS_FOR_PREFILL}), body.raw)


def sglang_bodies(body: JsonMembers, room: Room) -> Bodies:
    """`sglang`: both are told the room; a batch of prompts needs one for each of them."""
    prompts = _batch_size(body)
    where: dict[str, Any] = {"bootstrap_host": room.host, "bootstrap_room": room.number}
    if room.port is not None:
        where["bootstrap_port"] = room.port
    if prompts is not None:
        where = {name: [value] * prompts for name, value in where.items()}
        where["bootstrap_room"] = [(room.number + n) % (1 << 63) for n in range(prompts)]
    members = {name: orjson.dumps(value) for name, value in where.items()}
    return Bodies(_prefill(body, members), body.changed(members))


def bodies_of(connector: Connector, body: JsonMembers, room: Room | None) -> Bodies:
    """The two bodies; only SGLang's halves need a room."""
    if room is not None:
        return sglang_bodies(body, room)
    return nixl_bodies(body) if connector.needs_answer else http_bodies(body)


def transfer_in(answer: bytes) -> bytes:
    """Where the blocks are, as JSON, by a prefill endpoint's answer; `null` where it doesn't say:
    decode then computes the prompt itself.

    Raises `ValueError` for what isn't a JSON object.
    """
    if not isinstance(_parsed(answer), dict):
        raise ValueError("not an object")
    found = JsonMembers(answer).span(_TRANSFER)
    return b"null" if found is None else answer[slice(*found)]


def _parsed(answer: bytes) -> Any:
    """Also where a token is half a character, which the fast parser refuses as an escape."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        return json.loads(answer)


def with_transfer(body: JsonMembers, transfer: bytes) -> bytes:
    """The decode endpoint's body for `nixl` and `mooncake`: it fetches the blocks from there."""
    return body.changed({_TRANSFER: transfer})


def _prefill(body: JsonMembers, members: dict[str, bytes]) -> bytes:
    """One token, in one piece; every limit that the client gave becomes 1, and there is one."""
    lengths = body.names.intersection(_LENGTHS)
    if "max_output_tokens" not in lengths:
        lengths.add("max_tokens")
    limits = dict.fromkeys(sorted(lengths), b"1")
    return body.changed(limits | members, (*_STREAMING, _LEAST_LENGTH))


def _batch_size(body: JsonMembers) -> int | None:
    """How many prompts a body holds that has a list of them; None where there is one prompt."""
    raw, span = body.raw, body.span(_BATCH_MEMBER)
    if span is None or raw[span[0] : span[0] + 1] != b"[":
        return None
    prompts = list(item_spans(raw, span[0]))
    is_batch = bool(prompts) and raw[prompts[0][0] : prompts[0][0] + 1] in (b'"', b"[")
    return len(prompts) if is_batch else None
