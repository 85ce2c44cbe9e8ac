"""CustomResourceDefinitions of foreign kinds, as far as the project writes or reads them."""

from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

_HERE = Path(__file__).parent


def pod_group_definition(*, subgroups: bool = True) -> Document:
    """Volcano's PodGroup; without `subgroups` as before 1.14, which knew no subGroupPolicy."""
    definition = _read("podgroups.yaml")
    if not subgroups:
        for version in definition["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            del spec["properties"]["subGroupPolicy"]
    return definition


def leader_worker_set_definition() -> Document:
    """LeaderWorkerSet of its own controller."""
    return _read("leaderworkersets.yaml")


def _read(name: str) -> Document:
    definition: Document = yaml.safe_load((_HERE / name).read_text())
    return definition
