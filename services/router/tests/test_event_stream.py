"""Event streams and usage: what is counted, and the one event that is taken out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.event_stream import EventStream
from inferbus_router.usage import JsonUsageReader, UsageReader

USAGE = {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}


def event(document: object, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(document)}{end}".encode()


def chat(text: str) -> bytes:
    return event({"choices": [{"delta": {"content": text}}]})


ONLY_USAGE = event({"choices": [], "usage": USAGE})
DONE = b"data: [DONE]\n\n"
TEXTS = st.sampled_from(["hi", '"usage"', 'the "_tokens" of', "data:", "é推", ""])
EVENTS = st.lists(
    st.one_of(
        TEXTS.map(chat),
        st.sampled_from([b": ping\n\n", b"event: x\r\ndata: y\r\n\r\n", b"data: {broken\n\n"]),
        st.just(event({"choices": [{"index": 0}], "usage": USAGE})),
    ),
    max_size=8,
)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


def streamed(stream: EventStream, data: bytes, sizes: list[int]) -> bytes:
    return b"".join(stream.feed(piece) for piece in cut(data, sizes)) + stream.end()


@given(EVENTS, EVENTS, st.lists(st.integers(1, 60), max_size=20), st.booleans())
def test_every_byte_but_the_usage_event_is_forwarded(
    before: list[bytes], after: list[bytes], sizes: list[int], drop_usage: bool
) -> None:
    data = b"".join((*before, ONLY_USAGE, *after))
    expected = b"".join((*before, *after)) if drop_usage else data
    stream = EventStream(drop_usage)

    assert streamed(stream, data, sizes) == expected
    assert (stream.prompt_tokens, stream.output_tokens) == (12, 34)


@given(EVENTS, st.lists(st.integers(1, 60), max_size=20))
def test_whole_events_are_not_held_back(events: list[bytes], sizes: list[int]) -> None:
    stream, sent, got = EventStream(drop_usage=True), b"", b""
    for piece in cut(b"".join(events), sizes):
        sent += piece
        got += stream.feed(piece)
        ends = [sent.rfind(end) + len(end) for end in (b"\n\n", b"\r\n\r\n") if end in sent]
        assert len(got) == max(ends, default=0)


def test_t039_usage_that_the_router_asked_for_is_counted_and_not_shown() -> None:
    stream = EventStream(drop_usage=True)

    assert stream.feed(chat("a") + ONLY_USAGE + DONE) == chat("a") + DONE
    assert stream.output_tokens == 34


def test_t040_usage_beside_choices_is_forwarded_and_counted() -> None:
    both = event({"choices": [{"delta": {}}], "usage": USAGE})
    stream = EventStream(drop_usage=True)

    assert stream.feed(both) == both
    assert stream.output_tokens == 34


def test_t041_usage_that_the_client_asked_for_is_forwarded() -> None:
    stream = EventStream(drop_usage=False)

    assert stream.feed(ONLY_USAGE) == ONLY_USAGE
    assert stream.prompt_tokens == 12


def test_an_empty_usage_is_no_usage() -> None:
    empty = event({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})
    stream = EventStream(drop_usage=True)

    assert stream.feed(empty) == empty


def test_usage_in_every_chunk_counts_once() -> None:
    stream = EventStream(drop_usage=True)
    for tokens in (1, 2, 3):
        usage = {"prompt_tokens": 5, "completion_tokens": tokens}
        stream.feed(event({"choices": [{}], "usage": usage}))

    assert (stream.prompt_tokens, stream.output_tokens) == (5, 3)


def typed(kind: str, **members: object) -> bytes:
    """An event of an interface whose events name their kind twice."""
    return f"event: {kind}\n".encode() + event({"type": kind, **members})


@pytest.mark.parametrize("last", ["response.completed", "response.incomplete"])
def test_t044_the_usage_of_a_response_counts_when_it_is_whole(last: str) -> None:
    stream = EventStream(drop_usage=False)
    early = {"input_tokens": 7, "output_tokens": 1}
    said = {"input_tokens": 7, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 4}}
    stream.feed(typed("response.in_progress", response={"usage": early}))
    assert (stream.is_finished, stream.prompt_tokens) == (False, None)
    stream.feed(typed(last, response={"usage": said}))

    assert stream.is_finished
    assert (stream.prompt_tokens, stream.output_tokens, stream.cached_tokens) == (7, 9, 4)


def test_t044_a_response_that_failed_has_no_usage() -> None:
    stream = EventStream(drop_usage=False)
    stream.feed(typed("response.failed", response={"max_output_tokens": 5, "usage": None}))

    assert stream.is_finished
    assert stream.output_tokens is None


def test_the_usage_of_a_message_adds_up_over_its_events() -> None:
    stream = EventStream(drop_usage=False)
    start = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
    stream.feed(typed("message_start", message={"usage": start}))
    stream.feed(typed("content_block_delta", delta={"type": "text_delta", "text": "a"}))
    stream.feed(typed("message_delta", usage={"output_tokens": 40}))
    stream.feed(typed("message_delta", usage={"input_tokens": 6, "output_tokens": 42}))
    assert (stream.prompt_tokens, stream.output_tokens) == (None, None), "it isn't whole"
    stream.feed(typed("message_stop"))

    assert stream.is_finished
    assert (stream.prompt_tokens, stream.output_tokens, stream.cached_tokens) == (106, 42, 100)


@given(st.lists(st.integers(1, 40), max_size=30))
def test_it_does_not_matter_how_a_message_is_cut(sizes: list[int]) -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 2}
    data = (
        typed("message_start", message={"usage": usage})
        + typed("message_delta", usage={"output_tokens": 4})
        + typed("message_stop")
    )
    stream = EventStream(drop_usage=False)
    position = 0
    forwarded = b""
    for size in [*sizes, len(data)]:
        forwarded += stream.feed(data[position : position + size])
        position += size

    assert forwarded == data
    assert (stream.prompt_tokens, stream.output_tokens, stream.is_finished) == (7, 4, True)


def test_a_stream_of_chunks_is_finished_when_it_says_so() -> None:
    stream = EventStream(drop_usage=True)
    stream.feed(chat("a") + ONLY_USAGE)
    assert not stream.is_finished
    stream.feed(b"data: [DONE]\n\n")

    assert stream.is_finished


def test_tokens_from_the_prefix_cache_are_told_apart() -> None:
    stream = EventStream(drop_usage=True)
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    stream.feed(
        event({"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": 8}}})
    )

    assert (stream.prompt_tokens, stream.cached_tokens) == (9, 8)


def test_events_are_counted() -> None:
    stream = EventStream(drop_usage=True)
    stream.feed(chat("a") + chat("b")[:10])
    assert stream.events == 1
    stream.feed(chat("b")[10:] + ONLY_USAGE)
    assert stream.events == 2


def test_an_event_that_never_ends_does_not_fill_the_memory() -> None:
    stream = EventStream(drop_usage=True)
    forwarded = sum(len(stream.feed(b"x" * 10_000)) for _ in range(100))

    assert forwarded > 500_000


# Usage of responses that are no streams.


def read(*pieces: bytes) -> UsageReader:
    reader = JsonUsageReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


BODY = json.dumps(
    {
        "choices": [{"text": '"usage": {"prompt_tokens": 1}', "usage": {"completion_tokens": 1}}],
        "usage": USAGE | {"prompt_tokens_details": {"cached_tokens": 3}},
        "prompt_logprobs": None,
    }
).encode()


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(0, 5_000))
def test_t042_usage_is_found_however_the_body_is_cut(sizes: list[int], padding: int) -> None:
    body = BODY[:-1] + b', "x": "' + b"y" * padding + b'"}'
    usage = read(*cut(body, sizes))

    assert (usage.prompt_tokens, usage.output_tokens) == (12, 34)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"usage":{"prompt_tokens":5,"total_tokens":5}}', (5, None)),
        (b'{"usage":{"input_tokens":5,"output_tokens":6}}', (5, 6)),
        (b'{"usage":null}', (None, None)),
        (b'{"usage":{"prompt_tokens":"5"}}', (None, None)),
        (b'{"usage":{"prompt_tokens":5', (None, None)),
        (b'{"usage":{broken}}', (None, None)),
        (b'{"x":1}', (None, None)),
        (b"not json", (None, None)),
    ],
)
def test_what_a_body_says(body: bytes, expected: tuple[int | None, int | None]) -> None:
    usage = read(body)

    assert (usage.prompt_tokens, usage.output_tokens) == expected
