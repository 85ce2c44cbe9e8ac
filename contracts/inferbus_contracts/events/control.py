"""What people order: freeze, thaw, approve. Written by the console alone.

The key is the scope: a target, a policy, `Namespace/_/<name>` or `Platform/_/all`.
"""

from typing import ClassVar

from inferbus_contracts.base import EventData


class Order(EventData):
    """Who ordered it, why, and until when."""

    who: str
    why: str
    until_ms: int | None = None
    """None: until it is taken back."""


class ControlFrozen(Order):
    """Nothing in the scope is scaled."""

    event_type: ClassVar[str] = "control.frozen"


class ControlThawed(Order):
    """The freeze of exactly this scope ends."""

    event_type: ClassVar[str] = "control.thawed"


class ControlApproved(Order):
    """One decision may be applied."""

    event_type: ClassVar[str] = "control.approved"

    decision_id: str
    policy: str | None = None
    """Key of the policy where the decision is about a mix: it stands under that key in the log."""
