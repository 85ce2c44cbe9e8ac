"""The `model` field of a multipart form, as audio transcription requests carry it.

The form (RFC 7578) passes through as it is; only the bytes of that one field are read, and replaced
where the upstream name differs. Invariant: every other byte of the form is forwarded unchanged.
"""

import re

from inferbus_router.errors import invalid_form, model_missing
from inferbus_router.json_spans import Span, splice

_BOUNDARY = re.compile(rb';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_DISPOSITION = re.compile(rb"^content-disposition:\s*form-data", re.IGNORECASE | re.MULTILINE)
_PARAMETER = re.compile(rb';\s*([\w*-]+)=(?:"((?:[^"\\\r\n]|\\.)*)"|([^;\r\n]*))')
_MOST_NAME_BYTES = 1024


class FormBody:
    """A multipart/form-data body; a `RequestBody`."""

    __slots__ = (
        "_model_span",
        "max_output_tokens",
        "model",
        "prompt_tokens",
        "raw",
        "stream",
        "usage_wanted",
    )

    def __init__(self, raw: bytes, content_type: bytes) -> None:
        """Raises `RequestError`: 400 where it isn't such a form, 404 where it names no model."""
        fields = _fields(raw, _boundary(content_type))
        if "model" not in fields:
            raise model_missing()
        self._model_span = fields["model"]
        self.raw = raw
        self.model = _text(raw, self._model_span)
        if not self.model.strip():
            raise model_missing()
        self.stream = "stream" in fields and _text(raw, fields["stream"]).lower() == "true"
        self.usage_wanted = True
        self.max_output_tokens: int | None = None
        self.prompt_tokens = 0

    def prompt_bytes(self) -> bytes:
        """See `RequestBody`; sound and pictures have no prefix worth keeping."""
        return b""

    def with_changes(self, model: str | None, include_usage: bool) -> bytes:
        """See `RequestBody`; a form has no stream options, so usage is never asked for."""
        del include_usage
        return self.raw if model is None else splice(self.raw, [(self._model_span, model.encode())])


def _boundary(content_type: bytes) -> bytes:
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise invalid_form("its content type has no boundary")
    return bytes(match[1] or match[2])


def _fields(raw: bytes, boundary: bytes) -> dict[str, Span]:
    """The spans of the contents of the named parts; the first of a name counts.

    Raises `RequestError` where `model` occurs twice, or the form doesn't end as it must.
    """
    delimiter = b"\r\n--" + boundary
    position = _first_part(raw, delimiter)
    fields: dict[str, Span] = {}
    while raw[position : position + 2] != b"--":
        head_end = raw.find(b"\r\n\r\n", position)
        content_end = raw.find(delimiter, head_end + 4)
        if head_end < 0 or content_end < 0:
            raise invalid_form("its last part does not end")
        name = _part_name(raw, position, head_end)
        if name == "model" and name in fields:
            raise invalid_form("`model` occurs twice")
        fields.setdefault(name, (head_end + 4, content_end))
        position = content_end + len(delimiter)
    return fields


def _first_part(raw: bytes, delimiter: bytes) -> int:
    if raw.startswith(delimiter[2:]):
        return len(delimiter) - 2
    position = raw.find(delimiter)
    if position < 0:
        raise invalid_form("its boundary does not occur in it")
    return position + len(delimiter)


def _part_name(raw: bytes, start: int, end: int) -> str:
    disposition = _DISPOSITION.search(raw, start, end)
    if disposition is None:
        return ""
    position = disposition.end()
    while match := _PARAMETER.match(raw, position, end):
        if match[1].lower() == b"name":
            return (match[2] or match[3] or b"").decode("utf-8", "replace")
        position = match.end()
    return ""


def _text(raw: bytes, span: Span) -> str:
    start, end = span
    if end - start > _MOST_NAME_BYTES:
        raise invalid_form(f"a name in it is longer than {_MOST_NAME_BYTES} bytes")
    return raw[start:end].decode("utf-8", "replace")
