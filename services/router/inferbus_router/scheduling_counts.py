"""What is counted about scheduler plugins (routing spec 6.6).

Invariant: the model in a label is a name that a route serves, or the upstream name of one.
"""

from inferbus_router.distribution import Distribution

PLUGIN_BOUNDS_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
RATIO_BOUNDS = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)


class SchedulingCounts:
    """The counters of all schedulers that one router has had."""

    def __init__(self) -> None:
        self.plugin_seconds: dict[tuple[str, str, str], Distribution] = {}
        """How long plugins ran, by (model, plugin, type)."""
        self.match_ratios: dict[tuple[str, str], Distribution] = {}
        """The longest part of each prompt that somebody was known to have, by (plugin, model)."""

    def plugin_ran(self, model: str, plugin: str, kind: str, seconds: float) -> None:
        """A plugin has filtered or scored for a request."""
        key = (model, plugin, kind)
        known = self.plugin_seconds.get(key)
        if known is None:
            known = self.plugin_seconds[key] = Distribution(PLUGIN_BOUNDS_SECONDS)
        known.observe(seconds)

    def matched(self, plugin: str, model: str, ratio: float) -> None:
        """A cache-aware plugin has looked a prompt up; `ratio` is 0 to 1."""
        key = (plugin, model)
        known = self.match_ratios.get(key)
        if known is None:
            known = self.match_ratios[key] = Distribution(RATIO_BOUNDS)
        known.observe(ratio)

    def forget(self, models: set[str]) -> None:
        """Drop what belongs to none of these models."""
        self.plugin_seconds = {
            key: each for key, each in self.plugin_seconds.items() if key[0] in models
        }
        self.match_ratios = {
            key: each for key, each in self.match_ratios.items() if key[1] in models
        }
