"""Multipart forms: the `model` field of audio requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.errors import RequestError
from inferbus_router.form import FormBody
from services.router.tests.builders import head_of

BOUNDARY = b"----x1"
TYPE = b"multipart/form-data; boundary=----x1"


def form(*parts: tuple[bytes, bytes], preamble: bytes = b"") -> bytes:
    """A form of (disposition parameters, content)."""
    pieces = b"".join(
        b"--%b\r\nContent-Disposition: form-data; %b\r\nContent-Type: x/y\r\n\r\n%b\r\n"
        % (BOUNDARY, parameters, content)
        for parameters, content in parts
    )
    return preamble + pieces + b"--" + BOUNDARY + b"--\r\n"


FILE = (b'name="file"; filename="a.wav"', b"RIFF\x00\xff\r\n\r\n--not-the-boundary")


@pytest.mark.parametrize("preamble", [b"", b"\r\n", b"ignored\r\n"])
@pytest.mark.parametrize("name", [b'name="model"', b"name=model", b'NAME="model"'])
def test_the_model_is_found_wherever_it_stands(preamble: bytes, name: bytes) -> None:
    for parts in ([FILE, (name, b"whisper")], [(name, b"whisper"), FILE]):
        assert FormBody(form(*parts, preamble=preamble), TYPE).model == "whisper"


@given(st.binary(max_size=200), st.text(min_size=1, max_size=20).filter(str.strip))
def test_only_the_name_changes(content: bytes, name: str) -> None:
    if BOUNDARY in content or not name.isprintable():
        return
    raw = form((b'name="file"; filename="f"', content), (b'name="model"', b"client-name"))
    changed = FormBody(raw, TYPE).with_changes(name, include_usage=False)

    assert changed == raw.replace(b"client-name", name.encode())
    assert FormBody(changed, TYPE).model == name


def test_without_another_name_it_stays_as_it_is() -> None:
    raw = form(FILE, (b'name="model"', b"m"))

    assert FormBody(raw, TYPE).with_changes(None, include_usage=True) is raw


def test_a_file_name_is_not_a_field_name() -> None:
    raw = form(
        (b'name="file"; filename="x; name=model"', b"evil"),
        (b'filename="name=\\"model\\""; name="other"', b"evil"),
        (b'name="model"', b"good"),
    )

    assert FormBody(raw, TYPE).model == "good"


@pytest.mark.parametrize(
    ("value", "expected"), [(b"true", True), (b"True", True), (b"false", False)]
)
def test_a_form_can_ask_for_a_stream(value: bytes, expected: bool) -> None:
    raw = form((b'name="model"', b"m"), (b'name="stream"', value))

    assert FormBody(raw, TYPE).stream is expected


@pytest.mark.parametrize(
    ("raw", "content_type", "status"),
    [
        (form(FILE), TYPE, 404),
        (form((b'name="model"', b" ")), TYPE, 404),
        (form((b'name="model"', b"a"), (b'name="model"', b"b")), TYPE, 400),
        (form((b'name="model"', b"m")), b"multipart/form-data", 400),
        (b"no form", TYPE, 400),
        (form((b'name="model"', b"m"))[:-10], TYPE, 400),
        (form((b'name="model"', b"m" * 2000)), TYPE, 400),
        (b"", TYPE, 400),
    ],
)
def test_what_is_no_such_form_is_refused(raw: bytes, content_type: bytes, status: int) -> None:
    with pytest.raises(RequestError) as refused:
        FormBody(raw, content_type)

    assert refused.value.status == status


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (TYPE, True),
        (b"Multipart/Form-Data; boundary=x", True),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_which_bodies_are_forms(content_type: bytes, expected: bool) -> None:
    head = head_of(headers={"content-type": content_type.decode()} if content_type else {})

    assert head.has_form is expected


def test_a_quoted_boundary() -> None:
    assert (
        FormBody(form((b'name="model"', b"m")), b'multipart/form-data; boundary="----x1"').model
        == "m"
    )
