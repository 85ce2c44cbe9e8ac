"""Verifying a part of the log: every decision computed again, and the report about it."""

import sys
from dataclasses import dataclass

import click

from inferbus_cli.deciders import installed_deciders
from inferbus_cli.documents import as_json as to_json
from inferbus_cli.history import Part
from inferbus_cli.progress import progress
from inferbus_cli.reading import Read
from inferbus_cli.verify import Verdict, verify
from inferbus_contracts.errors import Problem, shorten
from inferbus_contracts.events.scaling import (
    DecisionRecord,
    ScalingAllocated,
    ScalingDecided,
    ScalingDemanded,
)
from inferbus_shared.bus.bus import Bus

EXIT_DIFFERENT = 1


@dataclass(frozen=True, slots=True)
class Deviation:
    """A decision that did not come out the same."""

    read: Read
    record: DecisionRecord
    verdict: Verdict


async def verify_part(bus: Bus, part: Part, *, as_json: bool) -> int:
    """Compute every decision again, print the report; 1 when one is different or unreadable."""
    deciders = installed_deciders()
    total = 0
    deviations: list[Deviation] = []
    unreadable: list[Problem] = []
    async with progress("computing decisions again") as shown:
        async for read in part.read(bus):
            record = _record(read)
            if read.problem is not None:
                unreadable.append(read.problem)
            if record is None:
                continue
            total += 1
            verdict = verify(read.message.data, record, deciders)
            if not verdict.identical:
                deviations.append(Deviation(read, record, verdict))
            shown.say(f"computing decisions again: {total}")
    if as_json:
        sys.stdout.write(to_json(_as_document(total, deviations, unreadable)))
    else:
        _print(total, deviations, unreadable)
    return EXIT_DIFFERENT if deviations or unreadable else 0


def _record(read: Read) -> DecisionRecord | None:
    data = read.event.data if read.event else None
    if isinstance(data, ScalingDecided | ScalingDemanded | ScalingAllocated):
        return data.record
    return None


def _print(total: int, deviations: list[Deviation], unreadable: list[Problem]) -> None:
    for deviation in deviations:
        event = deviation.read.event
        assert event is not None
        record, verdict = deviation.record, deviation.verdict
        click.echo(
            f"{event.envelope.type} {event.key} (DECISIONS:{event.sequence}, {event.id}), "
            f"{record.decider} {record.version}:"
        )
        if verdict.reason:
            click.echo(f"  {verdict.reason}")
        for one in verdict.differences:
            click.echo(f"  {one.field}: {shorten(one.recorded)} → {shorten(one.recomputed)}")
    for problem in unreadable:
        click.echo(f"error: {problem}", err=True)
    same = total - len(deviations)
    click.echo(f"{total} decisions, {same} identical, {len(deviations)} different")


def _as_document(
    total: int, deviations: list[Deviation], unreadable: list[Problem]
) -> dict[str, object]:
    return {
        "decisions": total,
        "identical": total - len(deviations),
        "different": [
            {
                "type": one.read.event.envelope.type,
                "key": str(one.read.event.key),
                "id": one.read.event.id,
                "sequence": one.read.event.sequence,
                "decider": one.record.decider,
                "version": one.record.version,
                "reason": one.verdict.reason,
                "differences": [
                    {"field": item.field, "recorded": item.recorded, "recomputed": item.recomputed}
                    for item in one.verdict.differences
                ],
            }
            for one in deviations
            if one.read.event
        ],
        "unreadable": [problem.to_dict() for problem in unreadable],
    }
