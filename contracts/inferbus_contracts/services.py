"""The names of the services: users of the bus, durables, metrics and settings derive from them."""

from enum import StrEnum


class Service(StrEnum):
    """Every program that speaks on the bus."""

    SPEC_WATCHER = "spec-watcher"
    METRICS_COLLECTOR = "metrics-collector"
    AUTOSCALER = "autoscaler"
    OPTIMIZER = "optimizer"
    WORKLOAD_RECONCILER = "workload-reconciler"
    ROUTER_CONFIG_PUBLISHER = "router-config-publisher"
    MODEL_DOWNLOADER = "model-downloader"
    ROUTER = "router"
    NODE_AGENT = "node-agent"
    CONSOLE = "console"
    CLI = "cli"
    """The command line: reads, and asks the spec-watcher and the console."""
    PROVISIONER = "provisioner"
    """The one step that creates and updates streams, durables and buckets."""

    @property
    def setting_prefix(self) -> str:
        """The prefix of its settings, e.g. `INFERBUS_SPEC_WATCHER_`."""
        return f"INFERBUS_{self.value.replace('-', '_').upper()}_"
