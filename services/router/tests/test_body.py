"""Request bodies: what is read in them, and that every other byte arrives unchanged."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.body import JsonBody
from inferbus_router.errors import RequestError
from inferbus_router.json_spans import top_level_spans

TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        ['"model"', '\\"model\\":\\"x', "{[", "}]", "\\", '"', "model", "\\u006d", "推論", "😀"]
    ),
)
NAMES = st.one_of(
    TEXTS, st.sampled_from(["model", "stream", "stream_options", "messages", "max_tokens"])
)
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=20,
)
DOCUMENTS = st.builds(
    lambda document, model, position: insert(document, "model", model, position),
    st.dictionaries(NAMES, VALUES, max_size=6),
    TEXTS.filter(str.strip),
    st.integers(0, 6),
)
LAYOUTS = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}])


def insert(document: dict[str, Any], name: str, value: Any, position: int) -> dict[str, Any]:
    """The document with a member at that position."""
    items = [(other, item) for other, item in document.items() if other != name]
    items.insert(min(position, len(items)), (name, value))
    return dict(items)


def encode(document: Any, layout: dict[str, Any]) -> bytes:
    return json.dumps(document, **layout).encode("utf-8", "surrogatepass")


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(DOCUMENTS, LAYOUTS)
def test_the_spans_of_members_are_their_values(
    document: dict[str, Any], layout: dict[str, Any]
) -> None:
    raw = encode(document, layout)
    spans = list(top_level_spans(raw))

    assert [name for name, _ in spans] == list(document)
    for name, (start, end) in spans:
        assert json.loads(raw[start:end].decode("utf-8", "surrogatepass")) == document[name]


@given(DOCUMENTS, LAYOUTS, TEXTS, st.booleans())
def test_a_change_touches_nothing_else(
    document: dict[str, Any], layout: dict[str, Any], name: str, include_usage: bool
) -> None:
    raw = encode(document, layout)
    if not is_utf8(raw) or not is_utf8(name.encode("utf-8", "surrogatepass")):
        return
    options = document.get("stream_options")
    include_usage &= options is None or isinstance(options, dict)
    body = JsonBody(raw)
    changed = json.loads(body.with_changes(name, include_usage))

    expected = document | {"model": name}
    if include_usage:
        expected["stream_options"] = (options or {}) | {"include_usage": True}
    assert body.model == document["model"]
    assert changed == expected


@given(DOCUMENTS, LAYOUTS, TEXTS.filter(lambda text: is_utf8(text.encode("utf-8", "replace"))))
def test_a_renamed_body_is_the_clients_but_for_the_name(
    document: dict[str, Any], layout: dict[str, Any], name: str
) -> None:
    raw = encode(document, layout)
    if not is_utf8(raw) or not is_utf8(name.encode("utf-8", "surrogatepass")):
        return
    changed = JsonBody(raw).with_changes(name, include_usage=False)
    start, end = dict(top_level_spans(raw))["model"]

    assert changed.startswith(raw[:start])
    assert changed.endswith(raw[end:])
    assert json.loads(changed[start : len(changed) - len(raw) + end]) == name


def test_a_body_that_needs_no_change_is_the_clients_own_object() -> None:
    raw = b'{"model": "m", "x": 1.0}'

    assert JsonBody(raw).with_changes(None, include_usage=False) is raw


@pytest.mark.parametrize(
    "number", ["12345678901234567890123", "1" + "0" * 400, "1.10", "1e999", "-0", "1E5", "0.10e-3"]
)
def test_numbers_survive_exactly(number: str) -> None:
    raw = b'{"model": "m", "seed": %b, "stream": true}' % number.encode()

    assert b'"seed": %b,' % number.encode() in JsonBody(raw).with_changes("other", True)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            b'{"model":"m","stream":true}',
            {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
        ),
        (
            b'{"model":"m","stream_options":null}',
            {"model": "m", "stream_options": {"include_usage": True}},
        ),
        (
            b'{"model":"m","stream_options":{}}',
            {"model": "m", "stream_options": {"include_usage": True}},
        ),
        (
            b'{"stream_options": {"a": {"include_usage": 5}} ,"model":"m"}',
            {"model": "m", "stream_options": {"a": {"include_usage": 5}, "include_usage": True}},
        ),
        (
            b'{"stream_options":{"include_usage":false,"b":[1]},"model":"m"}',
            {"model": "m", "stream_options": {"include_usage": True, "b": [1]}},
        ),
        (
            b'{"stream\\u005foptions":{"b":1},"model":"m"}',
            {"model": "m", "stream_options": {"b": 1, "include_usage": True}},
        ),
        (
            b' {"a":"\\"stream_options\\"","model":"m"}',
            {
                "a": '"stream_options"',
                "model": "m",
                "stream_options": {"include_usage": True},
            },
        ),
    ],
)
def test_rt_39_usage_is_merged_into_the_options(raw: bytes, expected: dict[str, Any]) -> None:
    assert json.loads(JsonBody(raw).with_changes(None, include_usage=True)) == expected


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("null", False),
        ("{}", False),
        ('{"include_usage": false}', False),
        ('{"include_usage": true}', True),
        ('{"include_usage": 1}', False),
        ("[]", True),
        ('"all"', True),
    ],
)
def test_what_the_client_gets_of_usage(options: str, wanted: bool) -> None:
    raw = b'{"model":"m","stream":true,"stream_options":%b}' % options.encode()

    assert JsonBody(raw).usage_wanted is wanted


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "Expecting property name"),
        (b"", "Expecting value"),
        (b'{"model":"m","prompt":"x"} {}', "Extra data at character 27"),
        (b'{"model":"m"}x', "Extra data"),
        (b"[]", "one JSON object"),
        (b'"model"', "one JSON object"),
        (b'{"model":"m","x":NaN}', "NaN is not a JSON value"),
        (b'{"model":"m","x":-Infinity}', "-Infinity is not a JSON value"),
        (b'{"model":"m\xff"}', "isn't UTF-8 at byte 11"),
        (b'{"model":"a\nb"}', "control character"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"model":"a","x":1,"model":"b"}', "`model` occurs twice"),
        (b'{"model":"a","\\u006dodel":"b"}', "`model` occurs twice"),
        (b'{"model":"a","model":"a"}', "`model` occurs twice"),
    ],
)
def test_t001_t002_what_is_not_one_object_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(RequestError) as refused:
        JsonBody(raw)

    assert refused.value.status == 400
    assert said in refused.value.message


def test_t002_white_space_around_is_accepted() -> None:
    assert JsonBody(b' \t\r\n{"model":"m"}\n ').model == "m"


@pytest.mark.parametrize(
    "member", ["", '"model":5,', '"model":"",', '"model":"  ",', '"model":{},']
)
def test_t003_a_body_without_a_model(member: str) -> None:
    with pytest.raises(RequestError) as refused:
        JsonBody(b'{%b"prompt":"x"}' % member.encode())

    assert refused.value.status == 404
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m"}',
        b'{"model":"m","prompt":["a","b"]}',
        b'{"model":"m","prompt":[[1,2]]}',
        b'{"model":"m","input":{"anything":1}}',
    ],
)
def test_rt_40_t004_t005_a_body_of_any_other_shape_is_passed_on(raw: bytes) -> None:
    assert JsonBody(raw).model == "m"


def test_a_model_in_a_nested_object_is_another_matter() -> None:
    raw = b'{"tools":[{"model":"inner"}],"model":"m","metadata":{"model":"x"}}'
    body = JsonBody(raw)

    assert body.model == "m"
    assert json.loads(body.with_changes("up", False)) == json.loads(raw) | {"model": "up"}


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    raw = b'{"model":"m","prompt":"\\ud800"}'

    assert JsonBody(raw).with_changes("up", False) == raw.replace(b'"m"', b'"up"')


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ('"max_tokens":7', 7),
        ('"max_completion_tokens":8', 8),
        ('"max_output_tokens":9', 9),
        ('"max_tokens":0', None),
        ('"max_tokens":"7"', None),
        ('"max_tokens":null,"max_completion_tokens":3', 3),
        ('"x":1', None),
    ],
)
def test_the_bound_on_output(members: str, expected: int | None) -> None:
    assert JsonBody(b'{"model":"m",%b}' % members.encode()).max_output_tokens == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("false", False), ("1", False), ('"true"', False)]
)
def test_only_true_asks_for_a_stream(value: str, expected: bool) -> None:
    assert JsonBody(b'{"model":"m","stream":%b}' % value.encode()).stream is expected
