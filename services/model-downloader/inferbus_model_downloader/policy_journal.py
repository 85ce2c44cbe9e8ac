"""What a download has behind it, as lines that are only ever appended.

    w <file> <start> <stop>   these bytes of the file were written
    v <file>                  the file is complete, right, and on disk
    x <file>                  the file was wrong: nothing of it counts any more

Files are numbered by their place in the plan. Invariant: a journal cut off anywhere never says more
than the whole one; a line that can't be read ends it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inferbus_model_downloader.policy_spans import Span, merged, missing, total_bytes


@dataclass(frozen=True, slots=True)
class FileState:
    """How far one file is."""

    done: tuple[Span, ...] = ()
    """Written, merged and in order."""
    verified: bool = False

    @property
    def done_bytes(self) -> int:
        """Bytes written."""
        return total_bytes(self.done)


def written_line(file: int, span: Span) -> bytes:
    """The line for bytes that were written."""
    return f"w {file} {span.start} {span.stop}\n".encode()


def verified_line(file: int) -> bytes:
    """The line for a file that is right."""
    return f"v {file}\n".encode()


def forgotten_line(file: int) -> bytes:
    """The line for a file that has to be fetched again."""
    return f"x {file}\n".encode()


def state_lines(file: int, state: FileState) -> bytes:
    """The shortest journal that says `state` of a file."""
    lines = [written_line(file, span) for span in state.done]
    return b"".join([*lines, verified_line(file)] if state.verified else lines)


def read_journal(data: bytes, sizes_bytes: Sequence[int]) -> tuple[FileState, ...]:
    """The state of every file; `sizes_bytes` are those of the plan, in its order."""
    done: list[list[Span]] = [[] for _ in sizes_bytes]
    verified: set[int] = set()
    for line in data.split(b"\n")[:-1]:
        entry = _entry(line, sizes_bytes)
        if entry is None:
            break
        word, file, span = entry
        if span:
            done[file].append(span)
        elif word == "v":
            verified.add(file)
        else:
            done[file].clear()
            verified.discard(file)
    return tuple(
        FileState(tuple(merged(spans)), file in verified and not missing(size, spans))
        for file, (spans, size) in enumerate(zip(done, sizes_bytes, strict=True))
    )


def _entry(line: bytes, sizes_bytes: Sequence[int]) -> tuple[str, int, Span | None] | None:
    parts = line.decode("ascii", errors="replace").split(" ")
    word, numbers = parts[0], parts[1:]
    if len(numbers) != {"w": 3, "v": 1, "x": 1}.get(word):
        return None
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        return None
    file, *ends = map(int, numbers)
    if file >= len(sizes_bytes):
        return None
    if not ends:
        return word, file, None
    span = Span(*ends)
    return (word, file, span) if span.start < span.stop <= sizes_bytes[file] else None
