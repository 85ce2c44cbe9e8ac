"""Models that are on the node already: host paths and claims, used where they are.

Invariant: nothing below a source is written, copied or read beyond names, sizes and times.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from inferbus_contracts.artifacts import ModelUri, Scheme
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.policy_files import Algorithm, Checksum, Snapshot, SourceFile


class LocalSource:
    """A file or a folder of this node."""

    def __init__(self, uri: ModelUri, host_dir: Path, claims_dir: Path) -> None:
        """`host_dir` stands for `/` of `host` paths, `claims_dir` is where claims are mounted."""
        below = claims_dir if uri.scheme is Scheme.PVC else host_dir
        self._uri = uri
        self.path = below / uri.address.lstrip("/")

    @property
    def is_file(self) -> bool:
        """Whether the source is one file."""
        return self.path.is_file()

    def snapshot(self) -> Snapshot:
        """Every file as it is now.

        Raises `ProblemsError` (MODEL_NOT_FOUND, PERMISSION_DENIED).
        """
        try:
            files = tuple(self._files())
        except FileNotFoundError as error:
            missing = error.filename or self.path
            raise ProblemsError(self._absent(f"{missing} doesn't exist")) from error
        except OSError as error:
            raise ProblemsError(self._unreadable(error)) from error
        if not files:
            raise ProblemsError(self._absent("it holds no file"))
        return Snapshot("", files)

    def _files(self) -> Iterator[SourceFile]:
        if not self.path.is_dir():
            yield _described(self.path, self.path.name)
            return
        for folder, _, names in os.walk(self.path, onerror=_raise):
            for name in names:
                file = Path(folder, name)
                yield _described(file, file.relative_to(self.path).as_posix())

    def _absent(self, reason: str) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_NOT_FOUND,
            message=f"the model is not on this node: {reason}",
            file=str(self.path),
            value=str(self._uri),
            remedy="put it there, or mount the volume that has it",
        )

    def _unreadable(self, error: OSError) -> Problem:
        return Problem(
            code=ErrorCode.PERMISSION_DENIED,
            message=f"the model cannot be read: {error.strerror or error}",
            file=str(error.filename or self.path),
            value=str(self._uri),
            remedy="give this user the right to read it",
        )


def _described(file: Path, path: str) -> SourceFile:
    status = file.stat()
    return SourceFile(
        path, status.st_size, Checksum(Algorithm.MODIFIED_NS, str(status.st_mtime_ns))
    )


def _raise(error: OSError) -> None:
    raise error
