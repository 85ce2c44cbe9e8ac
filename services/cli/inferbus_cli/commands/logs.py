"""`inferbus logs`: what a service of the platform, or a pod on this machine, writes."""

import sys

import click

from inferbus_cli.log_files import follow, log_of, tail
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option
from inferbus_cli.platform.directory import PlatformDirectory

ALL_LINES = -1


@command_with_examples(
    "logs",
    "inferbus logs autoscaler",
    "inferbus logs my-model-0-main-0-0 -c engine --tail 100",
    "inferbus logs router-0 -f",
)
@click.argument("name", metavar="SERVICE|POD")
@click.option("-f", "--follow", "following", is_flag=True, help="Show what is added, too.")
@click.option(
    "--tail",
    "lines",
    type=click.IntRange(min=ALL_LINES),
    default=ALL_LINES,
    metavar="N",
    help="The last N lines; all of them unless given.",
)
@click.option("-c", "--container", metavar="NAME", help="A container; the first unless given.")
@dir_option
def command(
    name: str, following: bool, lines: int, container: str | None, directory: PlatformDirectory
) -> None:
    """Print the log of a process of the platform, or of a container of a pod."""
    directory.state()
    path = log_of(directory, name, container)
    text, position = tail(path, None if lines == ALL_LINES else lines)
    _write(text)
    if following:
        for added in follow(path, position):
            _write(added)


def _write(data: bytes) -> None:
    sys.stdout.write(data.decode(errors="replace"))
    sys.stdout.flush()
