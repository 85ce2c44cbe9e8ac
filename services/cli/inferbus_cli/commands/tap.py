"""`inferbus tap`: the bus as it speaks."""

import sys
from collections.abc import AsyncIterator

import click

from inferbus_cli.lines import Form, as_json_line, short, wide
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.reading import Read, following, read
from inferbus_cli.session import Session, on_bus
from inferbus_cli.targets import ANYTHING, EVERYTHING, TargetFilter, subject_named
from inferbus_contracts.topology import DEAD_LETTER_ROOT, DEAD_LETTERS
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.tap import tap

DEAD = f"{DEAD_LETTER_ROOT}.>"
FORMS: dict[str | None, Form] = {None: short, "wide": wide, "json": as_json_line}


@command_with_examples(
    "tap",
    "inferbus tap",
    "inferbus tap scaling.decided -o wide",
    "inferbus tap --target modelserving/my-model",
    "inferbus tap --dead",
)
@click.argument("subject", required=False)
@click.option("--dead", is_flag=True, help="The dead letters: those there are, and new ones.")
@click.option("--target", metavar="KEY", help="Only what is about this object.")
@namespace_option
@click.option("--count", type=click.IntRange(min=1), help="End after that many.")
@output_option("wide", "json")
@dir_option
def command(
    subject: str | None,
    dead: bool,
    target: str | None,
    namespace: str | None,
    count: int | None,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Show everything that is said on the bus, or what is said on SUBJECT, until interrupted.

    SUBJECT is an event type such as scaling.decided, a domain such as scaling, or a subject of the
    bus with its wildcards.
    """
    listened = DEAD if dead else subject_named(subject) if subject else EVERYTHING
    wanted = TargetFilter.named(target, namespace) if target else ANYTHING
    form = FORMS[output]

    async def work(session: Session) -> None:
        shown = 0
        async for item in _messages(session, listened):
            if target and not (item.event and wanted.fits(item.event.key)):
                continue
            sys.stdout.write(form(item))
            sys.stdout.flush()
            shown += 1
            if shown == count:
                return

    on_bus(directory, work)


async def _messages(session: Session, subject: str) -> AsyncIterator[Read]:
    """Dead letters that stand there already are the reason to look for them."""
    if subject.startswith(f"{DEAD_LETTER_ROOT}."):
        start = Start.everything()
        letters = Follower(session.bus.connection, DEAD_LETTERS, subject, start)
        async for item in following(session.bus, letters):
            yield item
        return
    async for message in tap(session.bus.connection, subject):
        yield await read(session.bus, message)
