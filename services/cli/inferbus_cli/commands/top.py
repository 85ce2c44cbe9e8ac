"""`inferbus top`: targets and models as they are now."""

import asyncio
import sys

import click

from inferbus_cli.asking import ask_console
from inferbus_cli.documents import as_json
from inferbus_cli.live_tables import rendered
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.session import Session, on_bus
from inferbus_contracts.api.console import ConsoleQuery, TopReply, TopRequest

DEFAULT_INTERVAL_SECONDS = 1.0


@command_with_examples("top", "inferbus top", "inferbus top -w", "inferbus top -o json")
@click.option("-w", "--watch", is_flag=True, help="Keep it current, on a terminal.")
@click.option(
    "--interval",
    "interval_seconds",
    type=click.FloatRange(min=0.2),
    default=DEFAULT_INTERVAL_SECONDS,
    metavar="SECONDS",
    help="How often, with --watch; every second unless given.",
)
@output_option("json")
@dir_option
def command(
    watch: bool, interval_seconds: float, output: str | None, directory: PlatformDirectory
) -> None:
    """Show each workload with its last decision, and each model with its traffic."""
    live = watch and output is None and sys.stdout.isatty()

    async def work(session: Session) -> None:
        if live:
            await _watch(session, interval_seconds)
            return
        reply = await _ask(session)
        told = as_json(reply.to_dict()) if output else rendered(reply, session.now_ms)
        sys.stdout.write(told)

    on_bus(directory, work)


async def _ask(session: Session) -> TopReply:
    return await ask_console(session, ConsoleQuery.TOP, TopRequest(), TopReply)


async def _watch(session: Session, interval_seconds: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, screen=False) as live:
        while True:
            reply = await _ask(session)
            shown = Text(rendered(reply, session.now_ms), no_wrap=True, overflow="ellipsis")
            live.update(shown, refresh=True)
            await asyncio.sleep(interval_seconds)
