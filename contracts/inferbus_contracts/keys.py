"""What an event is about: the key of an object, or of one role of it."""

from typing import NamedTuple, Self

NO_NAMESPACE = "_"
"""Stands for the namespace of a cluster-scoped object wherever a token is needed."""


class ObjectKey(NamedTuple):
    """Names one object, or one role of it; hashable and ordered.

    `namespace` is `_` for cluster-scoped kinds. `role` is empty unless the key is a scale target
    inside a ModelServing.
    """

    kind: str
    namespace: str
    name: str
    role: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`; raises `ValueError` unless there are three or four parts."""
        parts = text.split("/")
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(f"{text!r} is no key of the form kind/namespace/name[/role]")
        return cls(*parts)

    @property
    def owner(self) -> Self:
        """The key of the whole object."""
        return self._replace(role="")

    def __str__(self) -> str:
        parts = (self.kind, self.namespace, self.name)
        return "/".join((*parts, self.role) if self.role else parts)
