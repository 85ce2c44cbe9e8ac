"""The conditions that expansion sets on a short object.

`Expanded` says whether there are children; beside it stand the types that users of the two
platforms know, and one type for each kind of doubt. Invariant: each type occurs at most once.
"""

from collections.abc import Iterable
from enum import StrEnum

from inferbus_contracts.conditions import condition
from inferbus_contracts.errors import Problem
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.resources.kinds import INFERENCE_SERVICE, MODEL_BOOSTER, PLAYGROUND

EXPANDED = "Expanded"
PROGRESSING = "Progressing"
FAILED = "Failed"


class Obstacle(StrEnum):
    """Why nothing can be rendered: the reason of `Expanded=False`."""

    MODEL_MISSING = "OpenModelMissing"
    RUNTIME_MISSING = "BackendRuntimeMissing"
    CONFIG_MISSING = "RecommendedConfigMissing"
    ARGUMENTS_UNRENDERABLE = "ArgumentsUnrenderable"
    FLAVOR_MISSING = "FlavorMissing"
    NAME_TAKEN = "NameTaken"
    GROUPS_UNKNOWN = "GroupsUnknown"
    """It isn't known yet what runs groups of pods on this cluster."""
    INVALID = "Invalid"
    CHILD_REFUSED = "ChildRefused"


class Doubt(StrEnum):
    """What is done otherwise than its author may think: the type of a condition that is True."""

    NAME_TAKEN = "NameTaken"
    """Another object has the name of a child, which is left out."""
    ROUTE_TAKEN = "RouteTaken"
    """The user's own ModelRoute takes the place of the generated one."""
    SETTING_UNREADABLE = "SettingUnreadable"
    """A variable that steers the platform has a value that means nothing."""
    CONFIGURATION_UNREADABLE = "ConfigurationUnreadable"
    """A ConfigMap of the platform can't be read."""
    LOADER_UNFIT = "LoaderUnfit"
    """The model loader can't load from this source."""
    FLAVORS_DIFFER = "FlavorsDiffer"
    """Flavors ask for different amounts; only those like the first are used."""
    SCALING_INERT = "ScalingInert"
    """Something was said about scaling that has no effect."""
    GROUPS_UNATTENDED = "GroupsUnattended"
    """The groups are a LeaderWorkerSet, whose controller isn't seen any more."""
    ARGUMENTS_INERT = "ArgumentsInert"
    """Arguments were given that never reach the engine."""


class BlockedError(Exception):
    """Raised where rendering can't go on until something changes."""

    def __init__(self, obstacle: Obstacle, *problems: Problem) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.obstacle = obstacle
        self.problems = problems


_UPSTREAM = {
    PLAYGROUND: (PROGRESSING, False, "AbortProcessing"),
    INFERENCE_SERVICE: (PROGRESSING, False, "AbortProcessing"),
    MODEL_BOOSTER: (FAILED, True, "ModelAbnormal"),
}
"""What the reference platforms say of an object that can't be processed, by its kind's token."""

OCCASIONAL = frozenset({FAILED, *(doubt.value for doubt in Doubt)})
"""Types that no longer hold when an expansion doesn't say them; `Progressing` is shared with
whoever watches the children."""


def expanded(children: int) -> ConditionFact:
    """All children could be rendered."""
    return condition(EXPANDED, True, "ChildrenRendered", f"{children} children")


def obstructed(kind: str, obstacle: Obstacle, problems: Iterable[Problem]) -> list[ConditionFact]:
    """Nothing can be rendered for an object of this kind."""
    message = "; ".join(str(problem) for problem in problems)
    type_, holds, reason = _UPSTREAM[kind]
    return [
        condition(EXPANDED, False, obstacle.value, message),
        condition(type_, holds, reason, message),
    ]


def doubtful(notes: Iterable[tuple[Doubt, Problem]]) -> list[ConditionFact]:
    """One condition for each kind of doubt, in the order of their first occurrence."""
    messages: dict[Doubt, list[str]] = {}
    for doubt, problem in notes:
        told = messages.setdefault(doubt, [])
        if str(problem) not in told:
            told.append(str(problem))
    return [
        condition(doubt.value, True, doubt.value, "; ".join(told))
        for doubt, told in messages.items()
    ]
