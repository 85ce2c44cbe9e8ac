"""`expand`: which kinds have children, and what becomes of those that can't be made.

Invariant: what is returned is admitted, belongs to nobody else, and is the same for the same input;
bad input becomes a condition, never an exception.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inferbus_contracts.admission import admit
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.inference import InferenceService, Playground
from inferbus_contracts.resources.kinds import (
    INFERENCE_SERVICE,
    LEADER_WORKER_SET,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    MODEL_SERVING,
    PLAYGROUND,
    key_of,
    kind_of,
)
from inferbus_spec_watcher.expansion.booster import booster_children
from inferbus_spec_watcher.expansion.conditions import (
    BlockedError,
    Doubt,
    Obstacle,
    doubtful,
    expanded,
    obstructed,
)
from inferbus_spec_watcher.expansion.context import Context, typed
from inferbus_spec_watcher.expansion.inference_service import service_children
from inferbus_spec_watcher.expansion.playground import playground_children
from inferbus_spec_watcher.expansion.pod_shapes import check_shape
from inferbus_spec_watcher.expansion.result import Expansion, Lookup
from inferbus_spec_watcher.expansion.settings import ExpansionSettings

Document = Mapping[str, Any]
Children = list[dict[str, Any]]

_RENDERERS: Mapping[str, Callable[[Document, Context], Children]] = {
    MODEL_BOOSTER: lambda document, context: booster_children(
        typed(ModelBooster, document), context
    ),
    PLAYGROUND: lambda document, context: playground_children(typed(Playground, document), context),
    INFERENCE_SERVICE: lambda document, context: service_children(
        typed(InferenceService, document), context
    ),
}
_PRIMARY: Mapping[str, tuple[str, ...]] = {
    PLAYGROUND: (INFERENCE_SERVICE,),
    INFERENCE_SERVICE: (LEADER_WORKER_SET, MODEL_SERVING),
}
"""The kinds of the child without which a parent of this kind serves nothing."""


def expand(document: Document, lookup: Lookup, settings: ExpansionSettings) -> Expansion | None:
    """The children of a stored object, from nothing but the arguments.

    `document` is admitted and has a uid. None: objects of its kind have no children.
    """
    kind = kind_of(document).token
    render = _RENDERERS.get(kind)
    if render is None:
        return None
    context = Context(document, lookup, settings)
    try:
        check_shape(kind, document)
        return _expansion(context, _admitted(render(document, context)))
    except BlockedError as blocked:
        return _blocked(context, blocked.obstacle, blocked.problems)
    except ProblemsError as error:
        return _blocked(context, Obstacle.INVALID, error.problems)


def _admitted(rendered: Children) -> Children:
    """The normalised children; raises `BlockedError` when one of them no store would take: half a
    set could mean that what serves is deleted."""
    children: Children = []
    problems: list[Problem] = []
    for child in rendered:
        try:
            children.append(admit(child).object)
        except ProblemsError as error:
            problems += error.problems
    if problems:
        raise BlockedError(Obstacle.CHILD_REFUSED, *problems)
    return children


def _expansion(context: Context, rendered: Children) -> Expansion:
    children = [child for child in rendered if not _taken(child, context)]
    return Expansion(
        children=tuple(children),
        conditions=(expanded(len(children)), *doubtful(context.doubts)),
        waits_for=frozenset(context.asked),
    )


def _blocked(context: Context, obstacle: Obstacle, problems: Sequence[Problem]) -> Expansion:
    return Expansion(
        children=(),
        conditions=(
            *obstructed(context.key.kind, obstacle, problems),
            *doubtful(context.doubts),
        ),
        waits_for=frozenset(context.asked),
        blocked=True,
    )


def _taken(child: Document, context: Context) -> bool:
    """Whether an object of this name belongs to somebody else.

    Raises `BlockedError` when nothing can be served without the child.
    """
    key = key_of(child)
    if context.find(key) is None or context.owns(key):
        return False
    problem = Problem(
        code=ErrorCode.CONFLICT,
        message=f"{key} exists and isn't a child of {context.key}: it stays as it is",
        field="metadata.name",
        value=key.name,
        remedy="delete or rename one of the two",
    )
    if key.kind in _PRIMARY.get(context.key.kind, ()):
        raise BlockedError(Obstacle.NAME_TAKEN, problem)
    doubt = Doubt.ROUTE_TAKEN if key.kind == MODEL_ROUTE else Doubt.NAME_TAKEN
    context.doubts.append((doubt, problem))
    return True
