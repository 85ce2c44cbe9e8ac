"""Which pods of a workload a policy means.

Invariant: a selector only ever narrows the pods that stand for the target; the labels that make
them so can't be overridden (autoscaling spec 2.4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inferbus_contracts.events.workload import PodFact
from inferbus_contracts.resources.annotations import ENGINE_PORT
from inferbus_contracts.resources.metadata import LabelSelector, LabelSelectorRequirement
from inferbus_contracts.resources.metric_sources import MetricEndpoint

_LABELS = "modelserving.volcano.sh/"
IMPLIED_LABELS = frozenset({f"{_LABELS}name", f"{_LABELS}entry"})
"""What a policy says about these is not heard: every pod that stands for the target has them."""

ROLE_LABEL = f"{_LABELS}role"

DEFAULT_PORT = MetricEndpoint().port

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions that all must hold; without any, every pod is meant."""

    labels: frozenset[tuple[str, str]] = frozenset()
    expressions: frozenset[tuple[str, str, frozenset[str]]] = field(default_factory=frozenset)
    """(key, operator, values)."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is meant (Kubernetes label selectors)."""
        if not self.labels and not self.expressions:
            return True
        return all(labels.get(key) == value for key, value in self.labels) and all(
            _holds(labels.get(key), operator, values) for key, operator, values in self.expressions
        )


def selector(labels: Mapping[str, str], narrowed: LabelSelector | None, *, role: bool) -> Selector:
    """What `labels` and `narrowed` ask for together, without the labels that are implied.

    `role`: the target is a role, so its role label is implied too. Raises `ValueError` for an
    operator that Kubernetes doesn't have.
    """
    implied = IMPLIED_LABELS | {ROLE_LABEL} if role else IMPLIED_LABELS
    wanted = [*labels.items(), *(narrowed.match_labels.items() if narrowed else ())]
    requirements = narrowed.match_expressions if narrowed else []
    return Selector(
        frozenset((key, value) for key, value in wanted if key not in implied),
        frozenset(_expression(item) for item in requirements if item.key not in implied),
    )


def standing_pods(pods: Iterable[PodFact], role: str) -> list[PodFact]:
    """The pods that stand for a workload, or for one `role` of it: one per role replica.

    Pods on their way out carry no load that a decision could rest on, so they don't count (D4).
    """
    return [
        pod
        for pod in pods
        if pod.entry
        and not pod.deleting
        and pod.phase != "Succeeded"
        and (not role or pod.role == role)
    ]


def is_failed(pod: PodFact) -> bool:
    """Broken for good; a restart alone is not (D4)."""
    return pod.failed or pod.phase == "Failed"


def is_ready(pod: PodFact) -> bool:
    """Serving, so its page counts (autoscaling spec 2.5)."""
    return pod.ready and pod.phase == "Running" and not is_failed(pod)


def engine_port(pod: PodFact) -> int:
    """Where a pod's engine answers: as its annotation says, else its first port, else 8100 (F3)."""
    told = pod.annotations.get(ENGINE_PORT, "")
    if told.isdecimal() and 0 < int(told) < 65536:
        return int(told)
    return DEFAULT_PORT if DEFAULT_PORT in pod.ports or not pod.ports else pod.ports[0]


def _expression(item: LabelSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    if item.operator not in OPERATORS:
        raise ValueError(f"{item.operator!r} is not one of {', '.join(OPERATORS)}")
    return item.key, item.operator, frozenset(item.values)


def _holds(value: str | None, operator: str, values: frozenset[str]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
