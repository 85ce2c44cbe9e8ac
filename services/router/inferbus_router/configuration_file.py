"""The router's configuration file: read at the start, and again whenever it changes.

Invariant: what is in force is always a whole, valid file; one that can't be used changes nothing
but what operators are told, in the log, in `is_good` and in the counters.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.policy_router_configuration import RouterConfiguration, read_configuration

SETTING = "INFERBUS_ROUTER_CONFIGURATION_FILE"
_MOST_BYTES = 1 << 20
_log = logging.getLogger("inferbus.router.configuration")


class ConfigurationFile:
    """One file and what it said last that was valid."""

    def __init__(self, path: Path, on_change: Callable[[RouterConfiguration], None]) -> None:
        """`on_change` gets every valid content, the first from `load`."""
        self.path = path
        self.is_good = False
        """What stands in the file now is in force."""
        self.loads = 0
        self.failures = 0
        """Contents that were put in force, and that were refused."""
        self._on_change = on_change
        self._seen: bytes | str = ""
        """Content, or why there is none."""

    def load(self) -> None:
        """Put the file in force; raises `ProblemsError` where it can't be used."""
        self._seen = content = self._content()
        self._put_in_force(content)

    async def watch(self, interval_seconds: float) -> None:
        """Look at the file that often, for ever.

        The content is compared, not its time: mounted files are swapped by renaming folders, and
        coarse clocks hide quick changes.
        """
        while True:
            await asyncio.sleep(interval_seconds)
            self.look()

    def look(self) -> None:
        """Put the file in force where it says something new; keep what is where it can't be."""
        content = self._content()
        if content == self._seen:
            return
        self._seen = content
        try:
            self._put_in_force(content)
        except ProblemsError as error:
            self.is_good = False
            self.failures += 1
            for problem in error.problems:
                _log.error("the configuration before this one stays in force: %s", problem)

    def _content(self) -> bytes | str:
        try:
            with self.path.open("rb") as file:
                return file.read(_MOST_BYTES + 1)
        except OSError as error:
            return error.strerror or str(error)

    def _put_in_force(self, content: bytes | str) -> None:
        configuration = parse_configuration(content, str(self.path))
        self._on_change(configuration)
        self.is_good = True
        self.loads += 1
        for note in configuration.notes:
            _log.warning("%s: %s", self.path, note)
        _log.info("%s is in force", self.path)


def parse_configuration(content: bytes | str, file: str) -> RouterConfiguration:
    """The configuration in the bytes of a file; a text says why there are none.

    Raises `ProblemsError` with everything that is wrong.
    """
    if isinstance(content, str):
        raise ProblemsError(_problem(file, ErrorCode.BAD_SETTING, f"it can't be read: {content}"))
    if len(content) > _MOST_BYTES:
        message = f"it is larger than {_MOST_BYTES} bytes"
        raise ProblemsError(_problem(file, ErrorCode.TOO_LARGE, message))
    # only routers with such a file need it, and it takes long to import
    from inferbus_shared.yaml_documents import BrokenYamlError, parse_documents

    try:
        documents = parse_documents(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        message = f"it isn't UTF-8 at byte {error.start}"
        raise ProblemsError(_problem(file, ErrorCode.BROKEN_YAML, message)) from None
    except BrokenYamlError as error:
        place = f"{file}:{error.line}"
        problem = Problem(
            code=ErrorCode.BROKEN_YAML, message=error.message, file=place, remedy=error.remedy
        )
        raise ProblemsError(problem) from None
    if len(documents) > 1:
        message = f"it holds {len(documents)} documents"
        raise ProblemsError(_problem(file, ErrorCode.NOT_A_DOCUMENT, message))
    if not documents:
        return RouterConfiguration()
    return read_configuration(documents[0].value, file, documents[0].lines)


def _problem(file: str, code: ErrorCode, message: str) -> Problem:
    return Problem(
        code=code,
        message=message,
        file=file,
        remedy=f"make it one YAML mapping, or unset {SETTING}",
    )
