"""Progress for people: one line that is written over on a terminal, plain lines elsewhere."""

import asyncio
from typing import TextIO

from inferbus_model_downloader.policy_progress import Meter, Progress, progress_line
from inferbus_shared.clock import real_now_ms

TERMINAL_SECONDS = 0.2
PLAIN_SECONDS = 10.0


async def show_progress(progress: Progress, stream: TextIO) -> None:
    """Write how far `progress` is, until cancelled."""
    meter = Meter()
    terminal = stream.isatty()
    shown = ""
    try:
        while True:
            await asyncio.sleep(TERMINAL_SECONDS if terminal else PLAIN_SECONDS)
            rate = meter.bytes_per_second(real_now_ms(), progress.done_bytes)
            line = progress_line(progress, rate)
            stream.write(f"\r{line.ljust(len(shown))}" if terminal else f"{line}\n")
            stream.flush()
            shown = line
    finally:
        if terminal and shown:
            stream.write("\n")
            stream.flush()
