"""Fetching what a staging lacks: several connections, each on a chunk of its own.

What arrives is written in blocks, so that a kill loses at most a block for each connection,
together less than a chunk. Invariant: a file counts as fetched only after the checksum its source
named held for what is on disk; one that fails it is fetched once more, and then given up.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.effects_staging import Staging
from inferbus_model_downloader.effects_threads import in_thread, together
from inferbus_model_downloader.policy_files import Checksum, Snapshot, SourceFile
from inferbus_model_downloader.policy_progress import Progress
from inferbus_model_downloader.policy_retry import RetryPolicy, wait_ms
from inferbus_model_downloader.policy_spans import Span, chunks, missing
from inferbus_model_downloader.ports import Source, TransientError

BLOCK_BYTES = 1 << 20
"""How much arrives before it is written; less where connections are many and chunks small."""

NOTHING = Span(0, 0)
"""The piece of a file that only has to be verified."""

_MAX_FETCHES = 2
"""Fetches of one file before its source counts as broken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferLimits:
    """How hard a download works."""

    connections: int
    chunk_bytes: int
    """The most that one request asks for, and that a kill may lose."""
    retry: RetryPolicy

    @property
    def block_bytes(self) -> int:
        """How much of each connection may be unwritten: less than a chunk for all together."""
        return max(1, min(BLOCK_BYTES, self.chunk_bytes // (2 * self.connections)))


class Patience:
    """Failures in a row of one piece of work, and the pauses between them."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failures = 0

    def reset(self) -> None:
        """The work got on."""
        self._failures = 0

    async def pause(self, error: TransientError) -> None:
        """Wait before the next attempt; raises `ProblemsError` when there shall be none."""
        self._failures += 1
        delay_ms = wait_ms(self._policy, self._failures, error.asked_wait_ms, random.random())
        if delay_ms is None:
            raise ProblemsError(_unreachable(error, self._failures)) from error
        await asyncio.sleep(delay_ms / 1000)


async def resolve(source: Source, revision: str | None, retry: RetryPolicy) -> Snapshot:
    """List a source, asking again while its failures may pass. Raises `ProblemsError`."""
    patience = Patience(retry)
    while True:
        try:
            return await source.resolve(revision)
        except TransientError as error:
            await patience.pause(error)


class Transfer:
    """One run over everything that a staging lacks."""

    def __init__(
        self,
        source: Source,
        snapshot: Snapshot,
        staging: Staging,
        limits: TransferLimits,
        progress: Progress,
    ) -> None:
        self._source = source
        self._snapshot = snapshot
        self._staging = staging
        self._limits = limits
        self._progress = progress
        self._queue: deque[tuple[int, Span]] = deque()
        self._open_pieces = [0] * len(staging.files)
        self._fetches = [1] * len(staging.files)
        self._checksums: dict[int, Checksum] = {}

    async def run(self) -> list[Checksum]:
        """Fetch and verify everything; returns the checksum of each file.

        Raises `ProblemsError`: MODEL_SOURCE_UNREACHABLE, MODEL_CORRUPT, MODEL_UNAUTHORIZED,
        MODEL_NOT_FOUND, DISK_FULL, CONFLICT.
        """
        for number, (file, state) in enumerate(
            zip(self._staging.files, self._staging.states, strict=True)
        ):
            if state.verified and file.checksum:
                self._checksums[number] = file.checksum
            else:
                self._enqueue(number, missing(file.size_bytes, state.done))
        await together(*(self._work() for _ in range(self._limits.connections)))
        return [self._checksums[number] for number in range(len(self._staging.files))]

    def _enqueue(self, file: int, spans: list[Span]) -> None:
        pieces = list(chunks(spans, self._limits.chunk_bytes)) or [NOTHING]
        self._queue.extend((file, piece) for piece in pieces)
        self._open_pieces[file] += len(pieces)

    async def _work(self) -> None:
        while self._queue:
            file, piece = self._queue.popleft()
            if piece != NOTHING:
                await self._fetch(file, piece)
            self._open_pieces[file] -= 1
            if not self._open_pieces[file]:
                await self._verify(file)

    async def _fetch(self, file: int, piece: Span) -> None:
        patience = Patience(self._limits.retry)
        start = piece.start
        while start < piece.stop:
            try:
                async with aclosing(self._blocks(file, Span(start, piece.stop))) as blocks:
                    async for block in blocks:
                        await in_thread(self._staging.write, file, start, block)
                        start += len(block)
                        patience.reset()
            except TransientError as error:
                await patience.pause(error)

    async def _blocks(self, file: int, span: Span) -> AsyncGenerator[bytearray, None]:
        """The bytes of a span in blocks; what came before a failure is handed on before it."""
        listed = self._staging.files[file]
        block = bytearray()
        failure: TransientError | None = None
        try:
            async with aclosing(_exactly(self._source, self._snapshot, listed, span)) as parts:
                async for part in parts:
                    block += part
                    self._progress.add(len(part))
                    if len(block) >= self._limits.block_bytes:
                        yield block
                        block = bytearray()
        except TransientError as error:
            failure = error
        if block:
            yield block
        if failure:
            raise failure

    async def _verify(self, file: int) -> None:
        listed = self._staging.files[file]
        found = await self._staging.checksum(file)
        if listed.checksum in (None, found):
            await in_thread(self._staging.verified, file)
            self._checksums[file] = found
            return
        await in_thread(self._staging.forget, file)
        if self._fetches[file] >= _MAX_FETCHES or not listed.size_bytes:
            raise ProblemsError(_corrupt(listed, found))
        self._fetches[file] += 1
        self._progress.take_back(listed.size_bytes)
        self._enqueue(file, missing(listed.size_bytes, ()))


async def _exactly(
    source: Source, snapshot: Snapshot, file: SourceFile, span: Span
) -> AsyncGenerator[bytes, None]:
    """The bytes of a span, never more; raises `TransientError` when the source ends early."""
    left = span.length
    async with aclosing(source.read(snapshot, file, span)) as parts:
        async for part in parts:
            yield part[:left]
            left -= min(left, len(part))
            if not left:
                return
    raise TransientError(f"{file.path}: the source ended {left} bytes early")


def _unreachable(error: TransientError, failures: int) -> Problem:
    asked = error.asked_wait_ms
    wish = f", and asks to be left alone for {asked // 1000} s" if asked is not None else ""
    return Problem(
        code=ErrorCode.MODEL_SOURCE_UNREACHABLE,
        message=f"the source failed {failures} times in a row{wish}: {error}",
        remedy="nothing that was fetched is lost; try again later, or use another endpoint",
    )


def _corrupt(file: SourceFile, found: Checksum) -> Problem:
    return Problem(
        code=ErrorCode.MODEL_CORRUPT,
        message=f"a file has the wrong content, {_MAX_FETCHES} times: {found.algorithm.value} is "
        f"{found.value}, not {file.checksum.value if file.checksum else 'known'}",
        field=file.path,
        remedy="the source, or a proxy on the way, is broken: use another endpoint",
    )
