"""What a decider keeps between two events of a key; stands in the log beside its decisions."""

from typing import Any, ClassVar

from inferbus_contracts.base import EventData


class StateStored(EventData):
    """The state of one key after the last event that changed it; one message per subject."""

    event_type: ClassVar[str] = "state"

    state_schema: int
    """Version of the layout of `state`; readers accept this and the one before."""
    applied_sequence: int
    """Inbox sequence of the last event folded in. One of its key that isn't later was delivered
    before."""
    cause: str
    """Id of that event."""
    decision_id: str = ""
    """Id of the last decision of the key."""
    applied_sequences: dict[str, int] | None = None
    """By key of the event, where events of other keys than the state's are folded in: the inbox
    sequence of the last one. Keys of several partitions keep no order among each other."""
    decision_ids: dict[str, str] | None = None
    """By key of the decision, where it isn't the state's: the id of the last one."""
    state: dict[str, Any]
