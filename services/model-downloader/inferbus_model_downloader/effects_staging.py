"""A download under way on disk: written in any order, resumable, published as a whole.

Invariant: the journal names bytes only after they were written, and a file as verified only after
its checksum held and it was flushed to disk; the tree is renamed into place only when every file
is. So an artifact folder with a manifest is complete, whatever was killed and whenever.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from inferbus_contracts.errors import ProblemsError
from inferbus_model_downloader.effects_files import (
    SHARED_MODE,
    disk_problems,
    free_bytes,
    sync_folder,
    sync_tree,
    write_bytes,
)
from inferbus_model_downloader.effects_lock import ArtifactLock
from inferbus_model_downloader.effects_threads import in_thread
from inferbus_model_downloader.policy_files import Algorithm, Checksum, SourceFile
from inferbus_model_downloader.policy_journal import (
    FileState,
    forgotten_line,
    read_journal,
    state_lines,
    verified_line,
    written_line,
)
from inferbus_model_downloader.policy_layout import CacheLayout, StagingLayout
from inferbus_model_downloader.policy_space import space_problem
from inferbus_model_downloader.policy_spans import Span
from inferbus_shared.processes.files import read_json, write_json

_HASH_BLOCK_BYTES = 8 << 20
_CLOSED = -1


class Staging:
    """The side folder of one artifact; works between `open` and `close`, while the lock is held."""

    def __init__(
        self,
        layout: StagingLayout,
        files: Sequence[SourceFile],
        lock: ArtifactLock,
        reserve_bytes: int,
    ) -> None:
        self._layout = layout
        self._lock = lock
        self._reserve_bytes = reserve_bytes
        self._journal = _CLOSED
        self.files = tuple(files)
        self.states: tuple[FileState, ...] = ()
        """How far each file was when the staging was opened."""

    @property
    def done_bytes(self) -> int:
        """What was there when the staging was opened."""
        return sum(state.done_bytes for state in self.states)

    def open(self) -> None:
        """Take up what an earlier process left, or start over if it was another download."""
        self._lock.check()
        with disk_problems(self._layout.root):
            plan = plan_of(self.files)
            if read_json(self._layout.plan) != plan:
                _remove(self._layout.root)
            self._layout.content.mkdir(parents=True, exist_ok=True)
            states = self._found()
            compact = b"".join(state_lines(number, state) for number, state in enumerate(states))
            write_bytes(self._layout.journal, compact)
            write_json(self._layout.plan, plan, mode=SHARED_MODE)
            self._journal = os.open(self._layout.journal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.states = states

    def close(self) -> None:
        """Stop; what was written stays for the next process."""
        if self._journal != _CLOSED:
            os.close(self._journal)
            self._journal = _CLOSED

    def write(self, file: int, offset: int, data: bytes | bytearray) -> None:
        """Write bytes of a file and remember it.

        Raises `ProblemsError` (DISK_FULL, CONFLICT, PERMISSION_DENIED).
        """
        self._lock.check()
        with disk_problems(self._layout.root), self._opened(file) as descriptor:
            view = memoryview(data)
            while view:
                count = os.pwrite(descriptor, view, offset)
                os.write(self._journal, written_line(file, Span(offset, offset + count)))
                view, offset = view[count:], offset + count
            self.require_space(0)

    def require_space(self, needed_bytes: int) -> None:
        """Raise `ProblemsError` (DISK_FULL) unless so much more fits beside the reserve."""
        root = self._layout.root
        problem = space_problem(needed_bytes, free_bytes(root), self._reserve_bytes, str(root))
        if problem:
            raise ProblemsError(problem)

    async def checksum(self, file: int) -> Checksum:
        """The checksum of a file as it is on disk, made the way its source makes it."""
        listed = self.files[file]
        algorithm = listed.checksum.algorithm if listed.checksum else Algorithm.SHA256
        hasher = new_hasher(algorithm, listed.size_bytes)
        with self._opened(file) as descriptor:
            for offset in range(0, listed.size_bytes, _HASH_BLOCK_BYTES):
                await in_thread(_hash_block, hasher, descriptor, offset)
        return Checksum(algorithm, hasher.hexdigest())

    def verified(self, file: int) -> None:
        """Flush a file whose checksum held, and remember that it needs no more work."""
        with disk_problems(self._layout.root), self._opened(file) as descriptor:
            os.fsync(descriptor)
            os.write(self._journal, verified_line(file))

    def forget(self, file: int) -> None:
        """Remember that nothing of a file counts."""
        with disk_problems(self._layout.root):
            os.write(self._journal, forgotten_line(file))

    def publish(self, cache: CacheLayout, key: str, sealed: dict[str, Any]) -> None:
        """Make the artifact exist: manifest, flush, rename. Every file must be verified.

        Raises `ProblemsError` as `write` does.
        """
        with disk_problems(self._layout.root):
            write_json(self._layout.manifest, sealed, mode=SHARED_MODE)
            sync_tree(self._layout.tree)
            cache.artifacts.mkdir(parents=True, exist_ok=True)
            self._lock.check()
            final = cache.artifact(key)
            if final.exists():  # damaged, or it would not have been downloaded again
                final.rename(self._layout.root / f"damaged-{secrets.token_hex(4)}")
            self._layout.tree.rename(final)
            sync_folder(cache.artifacts)
        self.close()
        shutil.rmtree(self._layout.root, ignore_errors=True)

    def _found(self) -> tuple[FileState, ...]:
        """What an earlier journal says of files that are still there."""
        journal = self._layout.journal
        data = journal.read_bytes() if journal.exists() else b""
        states = read_journal(data, [file.size_bytes for file in self.files])
        return tuple(
            state if self._is_there(file) else FileState()
            for state, file in zip(states, self.files, strict=True)
        )

    def _is_there(self, file: SourceFile) -> bool:
        path = self._layout.content / file.path
        return path.is_file() and path.stat().st_size == file.size_bytes

    @contextmanager
    def _opened(self, file: int) -> Iterator[int]:
        """A descriptor of a file at its full size; one at a time, since a model may have many."""
        listed = self.files[file]
        path = self._layout.content / listed.path
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, SHARED_MODE)
        try:
            if os.fstat(descriptor).st_size != listed.size_bytes:
                os.ftruncate(descriptor, listed.size_bytes)
            yield descriptor
        finally:
            os.close(descriptor)


def plan_of(files: Sequence[SourceFile]) -> dict[str, Any]:
    """What a resumed download must have in common with the one before."""
    return {
        "files": [
            {
                "path": file.path,
                "sizeBytes": file.size_bytes,
                "checksum": file.checksum.value if file.checksum else "",
            }
            for file in files
        ]
    }


def glance(layout: StagingLayout) -> tuple[int, int] | None:
    """(bytes of all files, bytes done) of a download of another process; None: not begun."""
    with suppress(OSError):
        plan = read_json(layout.plan)
        if plan is not None:
            sizes_bytes = [int(file["sizeBytes"]) for file in plan["files"]]
            states = read_journal(layout.journal.read_bytes(), sizes_bytes)
            return sum(sizes_bytes), sum(state.done_bytes for state in states)
    return None


def new_hasher(algorithm: Algorithm, size_bytes: int) -> "hashlib._Hash":
    """A hasher for a file of that size."""
    if algorithm is Algorithm.SHA256:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % size_bytes, usedforsecurity=False)


def _hash_block(hasher: "hashlib._Hash", descriptor: int, offset: int) -> None:
    hasher.update(os.pread(descriptor, _HASH_BLOCK_BYTES, offset))


def _remove(root: Path) -> None:
    if root.exists():
        shutil.rmtree(root)
