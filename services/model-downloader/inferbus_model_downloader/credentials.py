"""The Secret that a request names, from files.

Invariant: values are read when they are needed, and neither kept nor logged.
"""

from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError


def read_secret(folder: Path | None, name: str | None) -> dict[str, str]:
    """The keys and values of the Secret `name`; empty when there is no name.

    A Secret is a folder with a file for each key, as Kubernetes mounts it; a final line break
    doesn't count. Raises `ProblemsError` (MISSING_REFERENCE, BAD_SETTING, PERMISSION_DENIED).
    """
    if not name:
        return {}
    if folder is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message="a request names a Secret, and this service has no folder of Secrets",
                field="INFERBUS_MODEL_DOWNLOADER_CREDENTIALS_DIR",
                value=name,
                remedy="set it to the folder in which Secrets are mounted",
            )
        )
    secret = folder / name
    if "/" in name or name in (".", "..") or not secret.is_dir():
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message="the Secret with the credentials isn't there",
                file=str(folder),
                value=name,
                remedy="create it, or correct its name",
            )
        )
    try:
        return {
            file.name: file.read_text().rstrip("\n")
            for file in sorted(secret.iterdir())
            if file.is_file() and not file.name.startswith(".")
        }
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.PERMISSION_DENIED,
                message=f"the Secret cannot be read: {type(error).__name__}",
                file=str(secret),
                remedy="give this user the right to read its files, which must be texts",
            )
        ) from None
