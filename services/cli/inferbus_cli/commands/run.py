"""`inferbus run SERVICE`: one service in the foreground, configured by its environment."""

from importlib.metadata import entry_points

import click

from inferbus_cli.options import command as described
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

GROUP = "inferbus.services"


@described(
    "run",
    "INFERBUS_NATS_URL=nats://bus:4222 inferbus run autoscaler",
    "inferbus run engine-simulator -- vllm serve Qwen/Qwen2.5-0.5B-Instruct --port 8000",
)
@click.argument("service")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(service: str, arguments: tuple[str, ...]) -> int:
    """Run one service until SIGTERM; what stands after `--` is given to it."""
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if service not in known:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="there is no such service",
                field="SERVICE",
                value=service,
                remedy=f"services are {', '.join(sorted(known))}",
            )
        )
    code: int = known[service].load()(list(arguments))
    return code
