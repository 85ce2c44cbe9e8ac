"""What `up` is asked for: what can be had at all, and what a running platform can't become.

Pure. Invariant: a wish that isn't fulfilled is told; none is passed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferbus_cli.platform.directory import PlatformState
from inferbus_cli.platform.plan import (
    MOST_PROCESSES,
    SERVICES,
    SINGLE,
    PlatformOptions,
    instances_of,
)
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service

MOST_INSTANCES = 8
"""Of one service: as many as an inbox has partitions."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What `up` was asked for; None leaves it as it was, or at its default."""

    router_port: int | None = None
    clock_rate: float | None = None
    engines: str | None = None
    instances: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def wanted_instances(texts: Sequence[str]) -> dict[str, int]:
    """Instances by service, from texts such as `autoscaler=2`.

    Raises `ProblemsError` for what isn't written so, for several of a service that is one per
    machine, and for more processes than a platform has addresses for.
    """
    wanted = dict(_instances(text) for text in texts)
    options = PlatformOptions(instances={Service(name): n for name, n in wanted.items()})
    together = sum(instances_of(service, options) for service in SERVICES)
    if together > MOST_PROCESSES:
        message = f"together that is {together} processes, {MOST_PROCESSES} are possible"
        raise ProblemsError(_bad_scale(message, " ".join(texts), "ask for fewer"))
    return wanted


def unfulfilled(wishes: Wishes, state: PlatformState) -> list[Problem]:
    """One problem for each wish that a running platform differs from."""
    options = PlatformOptions(
        instances={Service(name): number for name, number in state.instances.items()}
    )
    compared = [
        ("--router-port", wishes.router_port, state.router_port),
        ("--clock-rate", wishes.clock_rate, state.clock_rate),
        ("--engines", wishes.engines, state.engines),
        *(
            (f"--scale {name}", number, instances_of(Service(name), options))
            for name, number in wishes.instances.items()
        ),
        *((name, value, state.environment.get(name)) for name, value in wishes.environment.items()),
    ]
    return [
        _differs(asked, wish, fact) for asked, wish, fact in compared if wish not in (None, fact)
    ]


def _instances(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    services = sorted(SERVICES)
    if name not in services or not number.isdecimal() or not 1 <= int(number) <= MOST_INSTANCES:
        message = f"instances are given as SERVICE=N with N from 1 to {MOST_INSTANCES}"
        raise ProblemsError(_bad_scale(message, text, f"services are {', '.join(services)}"))
    if Service(name) in SINGLE and int(number) > 1:
        message = f"there is one {name} per machine"
        raise ProblemsError(_bad_scale(message, text, "leave it out"))
    return name, int(number)


def _bad_scale(message: str, value: str, remedy: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT, message=message, field="--scale", value=value, remedy=remedy
    )


def _differs(field: str, wish: Any, fact: Any) -> Problem:
    return Problem(
        code=ErrorCode.ALREADY_RUNNING,
        message=f"the platform runs already, with {'no value' if fact is None else fact}",
        field=field,
        value=wish,
        remedy="end it with `inferbus down` and start it so, or leave this out",
    )
