"""`inferbus freeze`: stop scaling in a scope."""

import click

from inferbus_cli.asking import give_order
from inferbus_cli.options import Duration, dir_option, namespace_option
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.orders import scope_named, who_asks
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.api.console import OrderRequest, OrderVerb


@command_with_examples(
    "freeze",
    'inferbus freeze modelserving/my-model --why "looking at a memory leak"',
    'inferbus freeze autoscalingpolicy/my-policy --why "all that it scales"',
    'inferbus freeze namespace/team-a --for 2h --why "load test"',
    'inferbus freeze all --why "incident 42"',
)
@click.argument("scope", metavar="TARGET|POLICY|namespace/NAME|all")
@click.option("--why", "why", required=True, help="Why; it stands in the log for ever.")
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="How long; until thawed.")
@namespace_option
@dir_option
def command(
    scope: str, why: str, seconds: float | None, namespace: str | None, directory: PlatformDirectory
) -> None:
    """Stop scaling everything in a scope; pods and traffic are left alone.

    A policy or binding, named with its kind, stands for all that it scales.
    """
    wanted = scope_named(scope, namespace)
    order = OrderRequest(verb=OrderVerb.FREEZE, scope=wanted, who=who_asks(), why=why)
    click.echo(f"{wanted} frozen ({give_order(directory, order, seconds)})")
