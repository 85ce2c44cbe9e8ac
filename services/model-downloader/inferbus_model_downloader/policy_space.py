"""Whether a download fits on the disk.

Checked before the first byte, against all that is missing, and again while it runs, because others
write to the same disk. Invariant: a reserve stays free, so that the node doesn't die of a download.
"""

from inferbus_contracts.errors import ErrorCode, Problem


def space_problem(
    needed_bytes: int, free_bytes: int, reserve_bytes: int, folder: str
) -> Problem | None:
    """The problem that stops a download of `needed_bytes` more; None when there is room."""
    if needed_bytes + reserve_bytes <= free_bytes:
        return None
    return disk_full(
        f"{needed_bytes} bytes are missing, {free_bytes} are free and {reserve_bytes} stay free",
        folder,
    )


def disk_full(reason: str, folder: str) -> Problem:
    """The problem of a disk that holds no more."""
    return Problem(
        code=ErrorCode.DISK_FULL,
        message=f"the artifact doesn't fit on the disk: {reason}",
        file=folder,
        remedy="make room, or use a larger cache volume; the download goes on where it stopped",
    )
