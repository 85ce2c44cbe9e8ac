"""`inferbus-model-downloader`: `serve` on the bus (the default), or `fetch` one model.

Exit codes are those of every program here: 0 done, 2 bad input or a model that can't be had, 3 the
platform (a full disk, no right to write), 130 interrupted.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_model_downloader.command_line import FetchCommand, parse_fetch
from inferbus_model_downloader.policy_progress import Progress, human_bytes
from inferbus_model_downloader.policy_redaction import redacted_problem
from inferbus_model_downloader.policy_request import Artifact
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_model_downloader.terminal import show_progress
from inferbus_model_downloader.wiring import build_downloader
from inferbus_shared.program import run_program
from inferbus_shared.settings import load_settings
from inferbus_shared.telemetry import set_up_logging


def main(argv: Sequence[str] | None = None) -> int:
    """Serve without arguments or with `serve`, else fetch; answers the exit code.

    `argv` is by default the arguments of this process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words in ([], ["serve"]):
        # The bus takes a second to import, which an init container should not pay.
        from inferbus_model_downloader.serving import serve
        from inferbus_shared.bus.service import run_service

        return run_service(Service.MODEL_DOWNLOADER, DownloaderSettings, serve)
    set_up_logging(Service.MODEL_DOWNLOADER.value)
    return run_program(lambda: _fetch(words))


def _fetch(words: Sequence[str]) -> None:
    settings = load_settings(DownloaderSettings)
    command = parse_fetch(words, os.environ, settings.cache_dir)
    try:
        artifact = asyncio.run(_run(command, settings))
    except ProblemsError as error:
        secrets = command.request.options.secrets
        raise ProblemsError(
            *(redacted_problem(problem, secrets) for problem in error.problems)
        ) from error
    manifest = artifact.manifest
    sys.stdout.write(
        f"{artifact.path}: {len(manifest.files)} files, {human_bytes(manifest.total_bytes)}, "
        f"{manifest.source}{f' at {manifest.revision}' if manifest.revision else ''}\n"
    )


async def _run(command: FetchCommand, settings: DownloaderSettings) -> Artifact:
    downloader = build_downloader(settings, command.cache, command.max_workers)
    progress = Progress()
    showing = asyncio.create_task(show_progress(progress, sys.stderr))
    try:
        async with asyncio.timeout(command.timeout_seconds):
            return await downloader.fetch(command.request, progress)
    except TimeoutError as error:
        raise ProblemsError(_late(command)) from error
    finally:
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await showing


def _late(command: FetchCommand) -> Problem:
    return Problem(
        code=ErrorCode.TIMED_OUT,
        message="the model wasn't there in time",
        field="--timeout",
        value=f"{command.timeout_seconds} s",
        remedy="call again: the download goes on where it stopped",
    )


if __name__ == "__main__":
    sys.exit(main())
