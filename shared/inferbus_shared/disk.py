"""What a file system refuses, as problems that people can act on."""

import errno
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def refused(error: OSError, what: str, path: Path, *, field: str = "") -> ProblemsError:
    """DISK_FULL or PERMISSION_DENIED: `what` could not be done with `path`.

    `field` is the setting or option that named the path, where one did.
    """
    full = error.errno in _FULL
    return ProblemsError(
        Problem(
            code=ErrorCode.DISK_FULL if full else ErrorCode.PERMISSION_DENIED,
            message=f"{what}: {error.strerror or error}",
            file=str(path),
            field=field or None,
            remedy="make room on its disk" if full else "name a folder that you may write to",
        )
    )
