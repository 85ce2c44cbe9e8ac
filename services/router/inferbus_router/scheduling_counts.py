"""What is counted about scheduler plugins (routing spec 6.6).

Invariant: the model in a label is a name that a route serves, or the upstream name of one.
"""

from inferbus_router.distribution import Distribution

PLUGIN_BOUNDS_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
KV_BOUNDS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5),
)
RATIO_BOUNDS = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)


class SchedulingCounts:
    """The counters of all schedulers that one router has had."""

    def __init__(self) -> None:
        self.plugin_seconds: dict[tuple[str, str, str], Distribution] = {}
        """How long plugins ran, by (model, plugin, type)."""
        self.match_ratios: dict[tuple[str, str], Distribution] = {}
        """The longest part of each prompt that somebody was known to have, by (plugin, model)."""
        self.kv_seconds: dict[tuple[str, str], Distribution] = {}
        """By (work, model)."""
        self.kv_errors: dict[tuple[str, str], int] = {}
        """By (model, stage)."""

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

    def kv_took(self, work: str, model: str, seconds: float) -> None:
        """Asking about KV caches took that long; `work` is `tokenize` or `redis`."""
        known = self.kv_seconds.get((work, model))
        if known is None:
            known = self.kv_seconds[work, model] = Distribution(KV_BOUNDS_SECONDS)
        known.observe(seconds)

    def kv_failed(self, stage: str, model: str) -> None:
        """It failed at that stage, `tokenize` or `redis`."""
        self.kv_errors[model, stage] = self.kv_errors.get((model, stage), 0) + 1

    def forget(self, models: set[str]) -> None:
        """Drop what belongs to none of these models."""
        self.plugin_seconds = {
            key: each for key, each in self.plugin_seconds.items() if key[0] in models
        }
        self.match_ratios = {
            key: each for key, each in self.match_ratios.items() if key[1] in models
        }
        self.kv_seconds = {key: each for key, each in self.kv_seconds.items() if key[1] in models}
        self.kv_errors = {key: each for key, each in self.kv_errors.items() if key[0] in models}
