"""`inferbus thaw`: take a freeze back."""

import click

from inferbus_cli.asking import give_order
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option
from inferbus_cli.orders import scope_named, who_asks
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.api.console import OrderRequest, OrderVerb


@command_with_examples(
    "thaw",
    'inferbus thaw modelserving/my-model --why "leak found"',
    'inferbus thaw all --why "incident over"',
)
@click.argument("scope", metavar="TARGET|POLICY|namespace/NAME|all")
@click.option("--why", "why", required=True, help="Why; it stands in the log for ever.")
@namespace_option
@dir_option
def command(scope: str, why: str, namespace: str | None, directory: PlatformDirectory) -> None:
    """End the freeze of exactly this scope; a wider one stays in force."""
    wanted = scope_named(scope, namespace)
    order = OrderRequest(verb=OrderVerb.THAW, scope=wanted, who=who_asks(), why=why)
    click.echo(f"{wanted} thawed ({give_order(directory, order)})")
