"""Showing an artifact in the folder that was asked for: by links, never by copies.

A destination that doesn't exist becomes a link, swapped in one step, so that an engine which runs
keeps the artifact it has open. A folder that is there already (a mounted volume can't be replaced)
gets a link for each entry. Invariant: nothing that isn't a link is ever removed or replaced, and no
link of somebody else is removed.
"""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.effects_files import disk_problems


def show(
    target: Path, destination: Path, names: Iterable[str], *, cache: Path | None = None
) -> None:
    """Make `destination` show the folder `target`; `names` are the entries right below it.

    With `cache`, the folder that `target` is in, links are relative, so that they survive when the
    volume is mounted elsewhere, and stale links into it are removed. Raises `ProblemsError`
    (ALREADY_EXISTS, BAD_ARGUMENT, PERMISSION_DENIED).
    """
    with disk_problems(destination):
        if destination.exists() and destination.samefile(target):
            return
        _require_apart(target, destination)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if destination.is_dir() and not destination.is_symlink():
            show_each({name: target / name for name in names}, destination, cache=cache)
        else:
            _link(target, destination, relative=cache is not None)


def show_each(targets: dict[str, Path], destination: Path, *, cache: Path | None = None) -> None:
    """Make the folder `destination` hold a link for each entry, by relative path.

    A destination that is a link becomes a folder. `cache` and errors as in `show`.
    """
    with disk_problems(destination):
        if destination.is_symlink():
            destination.unlink()
        _require_folder(destination)
        destination.mkdir(parents=True, exist_ok=True)
        for name, target in targets.items():
            place = destination / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(target, place, relative=cache is not None)
        if cache:
            _remove_stale(destination, {name.split("/")[0] for name in targets}, cache.resolve())


def _remove_stale(destination: Path, current: set[str], cache: Path) -> None:
    for place in destination.iterdir():
        if place.is_symlink() and place.name not in current:
            shown = Path(os.path.normpath(destination.resolve() / place.readlink()))
            if shown.is_relative_to(cache):
                place.unlink()


def _link(target: Path, place: Path, *, relative: bool) -> None:
    if place.exists() and not place.is_symlink():
        raise ProblemsError(
            Problem(
                code=ErrorCode.ALREADY_EXISTS,
                message="something that is no link is where the model should be shown",
                file=str(place),
                remedy="move it away, or choose another destination",
            )
        )
    folder = place.parent.resolve()
    text = os.path.relpath(target.resolve(), folder) if relative else str(target)
    if place.is_symlink() and str(place.readlink()) == text:
        return
    fresh = folder / f".{place.name}.{secrets.token_hex(4)}"
    fresh.symlink_to(text)
    fresh.replace(folder / place.name)


def _require_folder(destination: Path) -> None:
    if destination.exists() and not destination.is_dir():
        raise ProblemsError(
            Problem(
                code=ErrorCode.ALREADY_EXISTS,
                message="the destination is a file",
                file=str(destination),
                remedy="choose a folder, or a name that doesn't exist yet",
            )
        )


def _require_apart(target: Path, destination: Path) -> None:
    if destination.parent.resolve().is_relative_to(target.resolve()):
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="the destination lies inside the model it should show",
                file=str(destination),
                value=str(target),
                remedy="choose a destination outside",
            )
        )
