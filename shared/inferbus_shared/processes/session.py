"""The conversation with a fork server, without a socket.

Commands are numbered, answers are matched by number, and events come in between; both clients move
their bytes through this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.commands import Command
from inferbus_shared.processes.records import ChildInfo, ExitRecord
from inferbus_shared.processes.wire import PROTOCOL_VERSION, LineReader, Message, encode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChildEvent:
    """A process started, or ended when there is an exit record."""

    child: ChildInfo
    exit: ExitRecord | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to the command that was numbered `number`."""

    number: int
    body: Mapping[str, Any]


class Session:
    """Numbers commands and reads what arrives."""

    def __init__(self) -> None:
        self._reader = LineReader()
        self._last = 0

    def encode(self, command: Command[Any]) -> tuple[int, bytes]:
        """The number of a command and its line."""
        self._last += 1
        message = {**command.body, "id": self._last, "fds": len(command.descriptors)}
        return self._last, encode(message)

    def feed(self, data: bytes) -> Iterator[Answer | ChildEvent]:
        """Answers and events that are complete now; raises `ProblemsError` for another protocol."""
        for message, _ in self._reader.feed(data):
            if message.get("event") == "hello":
                _check_version(message)
            elif "event" in message:
                yield _event(message)
            else:
                yield Answer(int(message["id"]), message)


def result_of(command: Command[T], answer: Answer) -> T:
    """The result of a command; raises `ProblemsError` when it was refused."""
    problems = answer.body.get("problems")
    if problems:
        raise ProblemsError(*(Problem.model_validate(problem) for problem in problems))
    return command.read(answer.body)


def _event(message: Message) -> ChildEvent:
    child = ChildInfo.from_dict(message["child"])
    exit_record = message.get("exit")
    return ChildEvent(child, ExitRecord.from_dict(exit_record) if exit_record else None)


def _check_version(hello: Message) -> None:
    if hello.get("protocol") != PROTOCOL_VERSION:
        raise ProblemsError(
            Problem(
                code=ErrorCode.UNSUPPORTED,
                message="the running fork server is of another version",
                value=hello.get("protocol"),
                remedy="restart the platform: `inferbus down`, then `inferbus up`",
            )
        )
