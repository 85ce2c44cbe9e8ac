"""What the example manifests scale, read from the manifests themselves.

Invariant: a model's target and bounds are those of the one policy in its file.
"""

from dataclasses import dataclass
from pathlib import Path

from inferbus_cli.manifest_unit import read_unit
from inferbus_contracts.admission import admit
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject
from inferbus_contracts.scaling.settlement import settle

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"

_APIS = {"kthena": "Kthena", "llmaz": "llmaz"}
_POLICIES = ("AutoscalingPolicy", "AutoscalingPolicyBinding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One model of the demo."""

    model: str
    """The name that clients ask for."""
    api: str
    key: ObjectKey
    """What its policy scales."""
    max_replicas: int


def example_targets() -> list[Target]:
    """The models of all example manifests, by file."""
    return [_target(path) for path in sorted(EXAMPLES.glob("*.yaml"))]


def _target(path: Path) -> Target:
    policies: dict[ObjectKey, PolicyObject] = {}
    for document in read_unit([str(path)]):
        admitted = admit(document.object)
        if admitted.kind.token in _POLICIES:
            key = admitted.key
            policies[key] = read_policy_object(key, str(key), 1, admitted.object)
    (intent,) = settle(policies).intents
    (aim,) = intent.targets
    return Target(
        model=aim.key.name,
        api=_APIS[path.stem],
        key=aim.key,
        max_replicas=aim.max_replicas,
    )
