"""What every child of a ModelBooster has in common.

Invariant: its revision changes when, and only when, its generated spec does, replicas apart
(modelbooster spec 2.2, 3.4).
"""

from collections.abc import Mapping
from typing import Any

from inferbus_spec_watcher.expansion.backend_plan import GROUP
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.manifests import manifest, revision

REVISION = f"{GROUP}/revision"


def booster_child(
    context: Context,
    kind: str,
    name: str,
    spec: Mapping[str, Any],
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A child with the booster's labels, or those of one of its backends."""
    labelled = {**labels, REVISION: revision(spec)}
    return manifest(context, kind, name, spec, labels=labelled, annotations=annotations)
