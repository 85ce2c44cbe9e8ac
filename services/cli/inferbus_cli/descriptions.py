"""One object with all that is known about it, as text. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_cli.documents import as_yaml, at, presentable
from inferbus_cli.kind_words import name_of
from inferbus_cli.summaries import summary
from inferbus_cli.tables import aligned
from inferbus_cli.units import age
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import format_time, parse_time
from inferbus_contracts.events.workload import WorkloadActed
from inferbus_contracts.resources.kinds import key_of
from inferbus_shared.bus.messages import Received

INTERESTING = frozenset(
    {
        "spec.changed",
        "spec.rejected",
        "workload.acted",
        "scaling.demanded",
        "scaling.decided",
        "scaling.allocated",
        "scaling.applied",
        "scaling.refused",
        "metrics.assessed",
        "routes.resolved",
        "control.frozen",
        "control.thawed",
        "control.approved",
    }
)
"""The types of events that a description shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is shown of one object."""

    object: Mapping[str, Any]
    children: Sequence[Mapping[str, Any]]
    events: Sequence[Received[EventData]]
    """Oldest first."""
    now_ms: int

    def text(self) -> str:
        """All sections."""
        sections = (*self._head(), *self._conditions(), *self._body(), *self._children())
        return "".join(f"{line}\n" for line in (*sections, *self._events()))

    def _head(self) -> Iterator[str]:
        metadata = self.object["metadata"]
        created = metadata.get("creationTimestamp")
        yield f"Name:         {metadata['name']}"
        yield f"Namespace:    {metadata.get('namespace', '(cluster)')}"
        yield f"Kind:         {self.object['kind']} ({self.object['apiVersion']})"
        yield f"UID:          {metadata.get('uid', '')}"
        yield f"Generation:   {metadata.get('generation', '')}"
        if created:
            yield f"Created:      {created} ({age(self.now_ms - parse_time(created))} ago)"
        if metadata.get("deletionTimestamp"):
            yield f"Deleting:     since {metadata['deletionTimestamp']}"
        yield from _mapping("Labels:", metadata.get("labels"))
        yield from _mapping("Annotations:", metadata.get("annotations"))
        for owner in metadata.get("ownerReferences") or ():
            yield f"Owner:        {owner.get('kind')}/{owner.get('name')}"

    def _conditions(self) -> Iterator[str]:
        conditions = at(self.object, "status.conditions")
        if not conditions:
            return
        rows = []
        for one in conditions:
            changed = one.get("lastTransitionTime")
            rows.append(
                (
                    str(one.get("type", "")),
                    str(one.get("status", "")),
                    str(one.get("reason", "")),
                    age(self.now_ms - parse_time(changed)) if changed else "",
                    str(one.get("message", "")),
                )
            )
        yield ""
        yield "Conditions:"
        yield from _indented(aligned(("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows))

    def _body(self) -> Iterator[str]:
        shown = presentable(self.object)
        body = {name: value for name, value in shown.items() if name not in _IDENTITY}
        status = {name: one for name, one in body.pop("status", {}).items() if name != "conditions"}
        for title, part in (("Spec:", body.pop("spec", None)), ("Status:", status)):
            if part:
                yield ""
                yield title
                yield from _indented(as_yaml(part))
        if body:
            yield ""
            yield from as_yaml(body).splitlines()

    def _children(self) -> Iterator[str]:
        if not self.children:
            return
        rows = []
        for child in self.children:
            created = child["metadata"].get("creationTimestamp")
            rows.append(
                (name_of(key_of(child)), age(self.now_ms - parse_time(created)) if created else "")
            )
        yield ""
        yield "Children:"
        yield from _indented(aligned(("NAME", "AGE"), rows))

    def _events(self) -> Iterator[str]:
        yield ""
        yield "Events:"
        if not self.events:
            yield "  none lately"
            return
        rows = [
            (
                format_time(event.time_ms),
                event.envelope.type,
                _shortened(event.id),
                _shortened(event.envelope.causation_id),
                f"{event.key.role}{': ' if event.key.role else ''}{summary(event.data)}",
            )
            for event in self.events
        ]
        yield from _indented(aligned(("TIME", "TYPE", "ID", "CAUSE", "WHAT"), rows))


_IDENTITY = ("apiVersion", "kind", "metadata")


def concerns(event: Received[EventData], pod: str) -> bool:
    """Whether an event about a pod's workload is about this pod (its key)."""
    return isinstance(event.data, WorkloadActed) and event.data.object == pod


def _shortened(id_: str) -> str:
    """Enough to see which event caused which; `-o json` has the whole of it."""
    return id_[:8]


def _mapping(title: str, values: Mapping[str, str] | None) -> Iterator[str]:
    for index, (name, value) in enumerate(sorted((values or {}).items())):
        yield f"{title if index == 0 else '':<14}{name}={value}"


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in text.splitlines())
