"""Options that several commands have, spelled and explained once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from inferbus_cli.platform.directory import PlatformDirectory

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _directory(_: click.Context, __: click.Parameter, value: Path | None) -> PlatformDirectory:
    return PlatformDirectory.of(value)


dir_option: Decorator = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    callback=_directory,
    help="The platform's folder; INFERBUS_DIR or .inferbus unless given.",
)

namespace_option: Decorator = click.option(
    "-n", "--namespace", metavar="NAMESPACE", help="The namespace; `default` unless given."
)


def output_option(*formats: str) -> Decorator:
    """`-o`, with the formats of a command; None means the table or text for people."""
    return click.option(
        "-o", "--output", "output", type=click.Choice(formats), help="Another form of output."
    )


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose help ends with examples; the function's docstring is the help itself."""
    listing = "\n".join(f"  {example}" for example in examples)
    epilog = f"\b\nExamples:\n{listing}"
    return click.command(name, epilog=epilog, no_args_is_help=False)


def duration_seconds(text: str) -> float:
    """Seconds in `90`, `45s`, `10m`, `2h` or `3d`; raises `ValueError` for anything else."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    seconds = float(number) * units[unit]
    if not 0 <= seconds < 10**10:
        raise ValueError(f"{text!r} is no length of time")
    return seconds


class Duration(click.ParamType[float]):
    """A length of time such as `90`, `45s`, `10m`, `2h` or `3d`; seconds as a number."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a usage error for anything else."""
        try:
            return duration_seconds(str(value))
        except ValueError:
            self.fail(f"{value!r} is no length of time; write 45s, 10m, 2h or 3d", param, ctx)
