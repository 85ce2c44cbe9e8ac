"""What a decider keeps between two events of a key; stands in the log beside its decisions."""

from typing import Any, ClassVar

from inferbus_contracts.base import EventData


class StateStored(EventData):
    """The state of one key after the last event that changed it; one message per subject."""

    event_type: ClassVar[str] = "state"

    state_schema: int
    """Version of the layout of `state`; readers accept this and the one before."""
    applied_sequence: int
    """Inbox sequence of the last event folded in: an event not after it is a redelivery."""
    cause: str
    """Id of that event."""
    decision_id: str = ""
    """Id of the last decision of the key."""
    state: dict[str, Any]
