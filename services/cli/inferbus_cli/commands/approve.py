"""`inferbus approve`: let a decision that waits for approval be applied."""

import click

from inferbus_cli.asking import give_order, qualified
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option
from inferbus_cli.orders import who_asks
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.api.console import OrderRequest, OrderVerb


@command_with_examples(
    "approve",
    'inferbus approve modelserving/my-model --why "budget is fine"',
    'inferbus approve my-model --decision 5b0c… --why "as agreed"',
)
@click.argument("target")
@click.option("--why", "why", required=True, help="Why; it stands in the log for ever.")
@click.option("--decision", metavar="ID", help="The decision; the last one unless given.")
@namespace_option
@dir_option
def command(
    target: str, why: str, decision: str | None, namespace: str | None, directory: PlatformDirectory
) -> None:
    """Approve a decision of a policy in mode `approve`; it is then applied as if decided now."""
    wanted = qualified(target, namespace)
    order = OrderRequest(
        verb=OrderVerb.APPROVE, scope=wanted, who=who_asks(), why=why, decision_id=decision
    )
    click.echo(f"{wanted} approved ({give_order(directory, order)})")
