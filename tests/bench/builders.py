"""Figures for tests."""

from tests.bench.figure import Detail, Figure, Outcome


def figure(
    value: float,
    *,
    limit: float | None = 10.0,
    name: str = "memory",
    configuration: dict[str, Detail] | None = None,
    more_is_better: bool = False,
) -> Figure:
    return Figure(
        name=name,
        value=value,
        unit="MB",
        limit=limit,
        more_is_better=more_is_better,
        meaning="what all processes take",
        configuration=configuration or {},
    )


def outcome(*values: float, limit: float | None = 10.0, name: str = "memory") -> Outcome:
    return Outcome(attempts=[figure(value, limit=limit, name=name) for value in values])
