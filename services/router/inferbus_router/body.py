"""What the router reads in a request body, and the few bytes it may change there.

A body is never re-encoded: what isn't changed arrives at the engine byte for byte, so that
numbers, key order and unknown fields survive (routing spec, defects 39 and 40). Invariant: parsing
the result of `with_changes` gives what parsing the client's body gave, but for `model` and
`stream_options.include_usage`.
"""

import json
import re
from typing import Any, Protocol

import orjson

from inferbus_router.errors import invalid_json, model_missing
from inferbus_router.json_spans import (
    Span,
    first_member_position,
    may_spell_otherwise,
    splice,
    top_level_spans,
)
from inferbus_router.policy_prompts import prompt_bytes
from inferbus_router.policy_tokens import estimate_prompt_tokens

_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("[^"\\]*+(?:\\.[^"\\]*+)*+")')
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_INCLUDE_USAGE = b'"include_usage":true'
_STREAM_OPTIONS = b'{"include_usage":true}'


class RequestBody(Protocol):
    """A body of any kind, as far as routing is concerned."""

    raw: bytes
    """As the client sent it."""
    model: str
    stream: bool
    """The client asked for an event stream."""
    usage_wanted: bool
    """The client gets usage in its stream, because it asked for it or its options are
    unreadable.
    """
    max_output_tokens: int | None
    prompt_tokens: int
    """Estimated (`policy_tokens`)."""

    def prompt_bytes(self) -> bytes:
        """The prompt in one form for all who send the same (`prompts`); empty where there is
        none.
        """
        ...

    def with_changes(self, model: str | None, include_usage: bool) -> bytes:
        """The body with another `model` (None: as it is), and with usage asked for in its
        stream.
        """
        ...


class JsonBody:
    """One JSON object."""

    def __init__(self, raw: bytes) -> None:
        """Raises `RequestError`: 400 where it isn't one JSON object, 404 where it names no
        model.
        """
        document = _parse(raw)
        if not isinstance(document, dict):
            raise invalid_json("it must be one JSON object")
        model = document.get("model")
        if not isinstance(model, str) or not model or model.isspace():
            raise model_missing()
        self._is_plain = raw.count(b'"model"') == 1 and not may_spell_otherwise(raw)
        """`"model"` stands in it once: inside a text its quotes would be escaped, so it is the
        member.
        """
        if not self._is_plain:
            _refuse_two_models(raw)
        self._document: dict[str, Any] | None = document
        """Until its prompt is taken: it may be large, and the response may take long."""
        self.raw = raw
        self.model = model
        self.stream = document.get("stream") is True
        self.usage_wanted = self.stream and _usage_wanted(document.get("stream_options"))
        self.max_output_tokens = _max_output_tokens(document)
        self.prompt_tokens = estimate_prompt_tokens(document)

    def prompt_bytes(self) -> bytes:
        """See `RequestBody`."""
        document, self._document = self._document, None
        return prompt_bytes(_parse(self.raw) if document is None else document)

    def with_changes(self, model: str | None, include_usage: bool) -> bytes:
        """See `RequestBody`."""
        edits: list[tuple[Span, bytes]] = []
        if model is not None:
            edits.append((self._model_span(), orjson.dumps(model)))
        if include_usage:
            edits.append(_usage_edit(self.raw))
        return splice(self.raw, edits)

    def _model_span(self) -> Span:
        if self._is_plain and (match := _MODEL.search(self.raw)) is not None:
            return match.span(1)
        return dict(top_level_spans(self.raw))["model"]


def _parse(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _parse_slowly(raw)


def _parse_slowly(raw: bytes) -> Any:
    """For what the fast parser refuses though engines read it: numbers beyond a float, lone
    surrogates.

    Raises `RequestError` that says what is wrong and where.
    """
    try:
        return json.loads(raw.decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise invalid_json(f"{error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise invalid_json(f"it isn't UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise invalid_json("it is nested too deeply") from None
    except ValueError as error:
        raise invalid_json(str(error)) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _refuse_two_models(raw: bytes) -> None:
    """Two top-level `model` members: the engine might take the other one than the router did."""
    if sum(name == "model" for name, _ in top_level_spans(raw)) > 1:
        raise invalid_json("`model` occurs twice")


def _usage_wanted(options: Any) -> bool:
    if options is None:
        return False
    return not isinstance(options, dict) or options.get("include_usage") is True


def _max_output_tokens(document: dict[str, Any]) -> int | None:
    for name in _OUTPUT_LIMITS:
        value = document.get(name)
        if value is not None and isinstance(value, int) and value > 0:
            return value
    return None


def _usage_edit(raw: bytes) -> tuple[Span, bytes]:
    """The edit that makes `stream_options.include_usage` true and leaves other options alone.

    Only for bodies whose `stream_options` are absent, null or an object without a true
    `include_usage`.
    """
    if b'"stream_options"' not in raw and not may_spell_otherwise(raw):
        return _insertion(raw, 0, b'"stream_options":' + _STREAM_OPTIONS + b",")
    span = dict(top_level_spans(raw)).get("stream_options")
    if span is None:
        return _insertion(raw, 0, b'"stream_options":' + _STREAM_OPTIONS + b",")
    start, end = span
    options = raw[start:end]
    if options == b"null":
        return span, _STREAM_OPTIONS
    members = dict(top_level_spans(options))
    if (asked := members.get("include_usage")) is not None:
        return (start + asked[0], start + asked[1]), b"true"
    return _insertion(raw, start, _INCLUDE_USAGE + (b"," if members else b""))


def _insertion(raw: bytes, start: int, text: bytes) -> tuple[Span, bytes]:
    position = first_member_position(raw, start)
    return (position, position), text
