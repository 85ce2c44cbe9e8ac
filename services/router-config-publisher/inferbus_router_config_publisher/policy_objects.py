"""Objects as the publisher keeps them: typed, with who they are and what is doubtful about them.

Invariant: an object that can't be read is kept as such, and never hides another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from inferbus_contracts.admission.rule import judge
from inferbus_contracts.admission.rules import rules_for
from inferbus_contracts.admission.schema import decode
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.resources.metadata import Resource
from inferbus_router_config_publisher.policy_conditions import sentence

ResourceT = TypeVar("ResourceT", bound=Resource, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Generic[ResourceT]):
    """One object as it stands."""

    key: ObjectKey
    uid: str
    generation: int
    resource: ResourceT | None
    """None where it can't be read."""
    fault: str
    """Why it can't be read; empty otherwise."""


def read_object(
    key: ObjectKey, fact: SpecChanged, model: type[ResourceT]
) -> Stored[ResourceT] | None:
    """The object in a fact; None when it was deleted."""

    def read() -> tuple[ResourceT | None, str]:
        try:
            decoded = decode(KINDS[key.kind].model, fact.object)
        except ProblemsError as error:
            return None, "; ".join(sentence(problem) for problem in error.problems)
        assert isinstance(decoded, model)
        return decoded, ""

    return _stored(key, fact, read)


def read_foreign(
    key: ObjectKey, fact: SpecChanged, model: type[ResourceT]
) -> Stored[ResourceT] | None:
    """The same for a kind of others, of which only the fields that are used are read."""

    def read() -> tuple[ResourceT | None, str]:
        try:
            return model.model_validate(fact.object), ""
        except ValidationError as error:
            wrong = ((".".join(map(str, one["loc"])), one["msg"]) for one in error.errors())
            return None, "; ".join(f"{place}: {message}" for place, message in wrong)

    return _stored(key, fact, read)


def _stored(
    key: ObjectKey, fact: SpecChanged, read: Callable[[], tuple[ResourceT | None, str]]
) -> Stored[ResourceT] | None:
    """`read` gives the resource, or why there is none."""
    if fact.deleted:
        return None
    resource, fault = read()
    return Stored(key=key, uid=fact.uid, generation=fact.generation, resource=resource, fault=fault)


def doubts_about(key: ObjectKey, resource: Resource) -> list[str]:
    """What admission says about an object, a sentence each."""
    verdict = judge(rules_for(key.kind), resource)
    return [sentence(problem) for problem in (*verdict.errors, *verdict.warnings)]
