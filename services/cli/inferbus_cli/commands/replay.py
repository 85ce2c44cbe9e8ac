"""`inferbus replay`: what the log holds, printed, or computed again."""

import sys

import click

from inferbus_cli.history import Part, one_stream, read_moment, read_sequences, streams_of
from inferbus_cli.lines import Form, as_json_line, dated, wide
from inferbus_cli.options import Duration, dir_option, namespace_option, output_option
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.session import Session, on_bus
from inferbus_cli.targets import ANYTHING, EVERYTHING, TargetFilter, subject_named
from inferbus_cli.verification import verify_part
from inferbus_contracts.catalog import Stream
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

DEFAULT_LAST_SECONDS = 600.0
FORMS: dict[str | None, Form] = {None: dated, "wide": wide, "json": as_json_line}


@command_with_examples(
    "replay",
    "inferbus replay --last 10m --target modelserving/my-model",
    "inferbus replay --subject scaling.decided --from-time 2026-11-20T13:00:00Z",
    "inferbus replay --stream DECISIONS --sequence 100..250 -o json",
    "inferbus replay --verify",
)
@click.option("--last", "last_seconds", type=Duration(), metavar="TIME", help="E.g. 10m or 2h.")
@click.option("--from-time", "from_time", metavar="TIME", help="From an RFC 3339 time on.")
@click.option("--to-time", "to_time", metavar="TIME", help="Until an RFC 3339 time.")
@click.option("--sequence", "sequence", metavar="A..B", help="A range of sequences of one stream.")
@click.option("--stream", metavar="NAME", help="One stream; all of them unless given.")
@click.option("--subject", metavar="SUBJECT", help="An event type, a domain, or a subject.")
@click.option("--target", metavar="KEY", help="Only what is about this object.")
@namespace_option
@click.option("--verify", "verify", is_flag=True, help="Compute every decision again and compare.")
@output_option("wide", "json")
@dir_option
def command(
    last_seconds: float | None,
    from_time: str | None,
    to_time: str | None,
    sequence: str | None,
    stream: str | None,
    subject: str | None,
    target: str | None,
    namespace: str | None,
    verify: bool,
    output: str | None,
    directory: PlatformDirectory,
) -> int:
    """Print the history, oldest first; the last ten minutes unless a part of it is named.

    With --verify every decision in the part, or in the whole log, is computed again from its own
    record; the exit code is 1 when one of them comes out different.
    """
    if sum(value is not None for value in (last_seconds, from_time, sequence)) > 1:
        raise ProblemsError(_one_start())
    filter_ = subject_named(subject) if subject else ""
    streams = streams_of(stream, filter_ or EVERYTHING)
    if sequence and not verify:
        one_stream(streams)
    part = Part(
        streams=(str(Stream.DECISIONS),) if verify else streams,
        subject=filter_,
        target=TargetFilter.named(target, namespace) if target else ANYTHING,
        from_ms=read_moment("--from-time", from_time) if from_time else None,
        to_ms=read_moment("--to-time", to_time) if to_time else None,
        sequences=read_sequences(sequence) if sequence else None,
    )
    seconds = last_seconds
    if seconds is None and not (verify or from_time or sequence):
        seconds = DEFAULT_LAST_SECONDS

    async def work(session: Session) -> int:
        chosen = part if seconds is None else part.last(session.now_ms, seconds)
        if verify:
            return await verify_part(session.bus, chosen, as_json=output == "json")
        async for read in chosen.read(session.bus):
            sys.stdout.write(FORMS[output](read))
        return 0

    return on_bus(directory, work)


def _one_start() -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="the part of the log is named in more than one way",
        field="--last, --from-time, --sequence",
        remedy="give one of them",
    )
