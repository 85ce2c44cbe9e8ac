"""One expansion under way: whose children are rendered, what was looked up, what is doubtful.

Invariant: every object that was asked for is in `asked`, whether it was found or not.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from inferbus_contracts.admission.schema import decode
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID, MANIFEST, PREFIX
from inferbus_contracts.resources.kinds import KINDS, key_of
from inferbus_contracts.resources.metadata import Resource
from inferbus_spec_watcher.expansion.conditions import Doubt
from inferbus_spec_watcher.expansion.result import Lookup
from inferbus_spec_watcher.expansion.settings import ExpansionSettings

ResourceT = TypeVar("ResourceT", bound=Resource)

_NOT_INHERITED = frozenset({DECISION_ID, MANIFEST})
"""What stands for one write of the parent itself."""


class Context:
    """The surroundings of one expansion."""

    def __init__(
        self, document: Mapping[str, Any], lookup: Lookup, settings: ExpansionSettings
    ) -> None:
        """`document` is stored: admitted, with a uid."""
        metadata = document["metadata"]
        self.key = key_of(document)
        self.uid = str(metadata["uid"])
        self.annotations: Mapping[str, str] = metadata.get("annotations") or {}
        self.settings = settings
        self.asked: set[ObjectKey] = set()
        self.doubts: list[tuple[Doubt, Problem]] = []
        self._lookup = lookup

    def find(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The stored object of a key."""
        self.asked.add(key)
        return self._lookup(key)

    def owns(self, key: ObjectKey) -> bool:
        """Whether the object of a key is a child of the parent."""
        found = self.find(key)
        owners = (found or {}).get("metadata", {}).get("ownerReferences") or ()
        return self.uid in [owner.get("uid") for owner in owners]

    def resource(self, model: type[ResourceT], kind: str, name: str) -> ResourceT | None:
        """A stored object of a kind, in the parent's namespace where kinds have one, typed.

        Raises `ProblemsError` when what is stored isn't of its kind's form.
        """
        found = self.find(KINDS[kind].key(name, self.key.namespace))
        return None if found is None else typed(model, found)

    def doubt(self, doubt: Doubt, field: str, message: str, remedy: str, value: Any = None) -> None:
        """Note what the object's author should know."""
        problem = Problem(
            code=ErrorCode.RULE_BROKEN, message=message, remedy=remedy, field=field, value=value
        )
        self.doubts.append((doubt, problem))

    @property
    def inherited_annotations(self) -> dict[str, str]:
        """The parent's annotations that steer the platform; its children carry them too."""
        return {
            name: value
            for name, value in sorted(self.annotations.items())
            if name.startswith(PREFIX) and name not in _NOT_INHERITED
        }


def typed(model: type[ResourceT], document: Mapping[str, Any]) -> ResourceT:
    """A stored document as its model; raises `ProblemsError` when it isn't of that form."""
    body = {name: value for name, value in document.items() if name != "status"}
    resource = decode(model, body)
    assert isinstance(resource, model)
    return resource
