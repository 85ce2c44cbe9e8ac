"""`fetch`: one artifact, from a shell or as an init container.

The reference's init container calls its downloader without a word for what to do and with
`--source` (modelbooster-downloader spec 4.1); that form means `fetch` here.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from inferbus_contracts.artifacts import parse_model_uri
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.policy_options import hub_options, parse_config
from inferbus_model_downloader.policy_request import FetchRequest

PROGRAM = "inferbus-model-downloader"

_MAX_WORKERS = 64
_CACHE_NAME = ".inferbus-models"
_RELATIVE = (".", "..", "~")


@dataclass(frozen=True, slots=True)
class FetchCommand:
    """A parsed command line."""

    request: FetchRequest
    cache: Path
    max_workers: int | None
    timeout_seconds: float | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise `ProblemsError` where argparse would write to the terminal and leave."""
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=message,
                remedy=f"`{PROGRAM} fetch --help` lists the options",
            )
        )


def parse_fetch(
    words: Sequence[str], environment: Mapping[str, str], cache_dir: Path | None
) -> FetchCommand:
    """The command in `words`, which may start with `fetch`; `cache_dir` is the setting.

    Raises `ProblemsError`; `--help` raises SystemExit.
    """
    given = list(words[1:] if words[:1] == ["fetch"] else words)
    options = _parser().parse_args(given)
    source = options.source or options.uri
    if not source or (options.source and options.uri):
        raise ProblemsError(_one_source())
    output = _absolute(options.output_dir)
    return FetchCommand(
        request=FetchRequest(
            source=parse_model_uri(_local_path(source)),
            destination=output,
            revision=options.revision,
            include=tuple(options.include),
            exclude=tuple(options.exclude),
            options=hub_options({**environment, **parse_config(options.config)}),
        ),
        cache=_absolute(options.cache_dir or cache_dir or default_cache(output)),
        max_workers=options.max_workers,
        timeout_seconds=options.timeout,
    )


def default_cache(output: Path) -> Path:
    """The cache of an output folder: beside it, so that it can be swapped as a whole, or in it
    when it is there already, since a mounted volume ends there."""
    within = output.is_dir() and not output.is_symlink()
    return (output if within else output.parent) / _CACHE_NAME


def _parser() -> _Parser:
    parser = _Parser(prog=f"{PROGRAM} fetch", description="Fetch a model into a folder.")
    parser.add_argument("uri", nargs="?", help="hf://owner/name, host:///path or pvc://claim/path")
    parser.add_argument("-s", "--source", help="the same, as the reference's option")
    parser.add_argument("-o", "--output-dir", default="~/downloads", help="shows the model")
    parser.add_argument("-w", "--max-workers", type=_workers, help="connections (1 to 64)")
    parser.add_argument("-c", "--config", help="JSON object with hf_token, hf_endpoint, …")
    parser.add_argument("--revision", help="branch, tag or commit")
    parser.add_argument("--include", action="append", default=[], help="glob of files to fetch")
    parser.add_argument("--exclude", action="append", default=[], help="glob of files to leave")
    parser.add_argument("--cache-dir", help="where artifacts are kept")
    parser.add_argument("--timeout", type=_seconds, help="give up after so many seconds")
    return parser


def _workers(text: str) -> int:
    count = int(text)
    if not 1 <= count <= _MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"{count} is not from 1 to {_MAX_WORKERS}")
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return seconds


def _local_path(source: str) -> str:
    """A path that is meant relative to where the command was given, made absolute."""
    is_relative = source.partition("/")[0] in _RELATIVE
    return str(_absolute(source)) if is_relative else source


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - keeps a link a link


def _one_source() -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="name one source",
        field="--source",
        remedy=f"e.g. `{PROGRAM} fetch hf://owner/name --output-dir models/name`",
    )
