"""Telling people that something takes longer than a second, on standard error.

On a terminal a line that moves, otherwise a line now and then; nothing at all for what is quick.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TextIO

PATIENCE_SECONDS = 1.0
REPEAT_SECONDS = 10.0


class Progress:
    """What is being done at the moment."""

    def __init__(self, text: str) -> None:
        self.text = text

    def say(self, text: str) -> None:
        """Something else is being done, or more is known about it."""
        self.text = text


@asynccontextmanager
async def progress(text: str, stream: TextIO | None = None) -> AsyncIterator[Progress]:
    """Tell `text` once the block has taken a second."""
    shown = Progress(text)
    told = stream or sys.stderr
    telling = asyncio.ensure_future(_on_terminal(shown) if told.isatty() else _tell(shown, told))
    try:
        yield shown
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(shown: Progress, stream: TextIO) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    told = ""
    while True:
        if shown.text != told:
            told = shown.text
            stream.write(f"{told} …\n")
            stream.flush()
        await asyncio.sleep(REPEAT_SECONDS)


async def _on_terminal(shown: Progress) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    from rich.console import Console

    status: Any = Console(stderr=True).status(shown.text)
    with status:
        while True:
            status.update(shown.text)
            await asyncio.sleep(0.1)
