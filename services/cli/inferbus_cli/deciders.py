"""The deciders that are installed, found by their entry points: the command line imports none."""

from importlib.metadata import entry_points

from inferbus_cli.verify import Recompute

GROUP = "inferbus.deciders"


def installed_deciders() -> dict[str, Recompute]:
    """The `recompute` of every decider, by its name."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}
