"""Applies a folder of manifests and keeps it applied.

One file is one unit, stored as a whole or not at all. What a file no longer holds goes, with the
file or without. A bad file is told once for each change of what is wrong with it, and stops no
other; what it defined before stays.
"""

import asyncio
import logging
import time
from pathlib import Path

from inferbus_contracts.api.objects import Preconditions
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import SECRET
from inferbus_shared.bus.membership import Membership
from inferbus_shared.manifests import content_of, manifest_files, read_manifests
from inferbus_shared.objects.secrets import SecretFiles
from inferbus_shared.objects.unit import Unit, check_unit
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.policy_folder import (
    FOLDER,
    Look,
    defined_elsewhere,
    is_settled,
    left_out,
    marked,
)
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings

log = logging.getLogger("inferbus.spec-watcher")


class Folder:
    """The folder of one instance; only the active one applies it."""

    def __init__(
        self,
        root: Path,
        settings: SpecWatcherSettings,
        store: ObjectStore,
        applier: Applier,
        rejections: Rejections,
        membership: Membership,
    ) -> None:
        self._root = root
        self._interval_seconds = settings.folder_interval_seconds
        self._secrets = SecretFiles(settings.secrets) if settings.secrets else None
        self._store = store
        self._applier = applier
        self._rejections = rejections
        self._membership = membership
        self._looks: dict[str, Look] = {}
        self._applied: dict[str, Look] = {}
        self._defines: dict[str, frozenset[ObjectKey]] = {}
        self._problems: dict[str, tuple[str, ...]] = {}

    async def run(self) -> None:
        """Look at the folder again and again until cancelled."""
        await self._store.ready()
        while True:
            if self._membership.is_active:
                await self._round()
            await asyncio.sleep(self._interval_seconds)

    async def _round(self) -> None:
        try:
            looks = _look(self._root)
        except OSError as error:
            await self._tell(".", (_unreadable(self._root, error),))
            return
        self._problems.pop(".", None)
        settled = self._settled(looks)
        self._looks = looks
        self._forget(set(looks))
        while await self._apply_all(settled):
            pass
        await self._delete_left_out(frozenset(looks) - self._defines.keys())

    def _settled(self, looks: dict[str, Look]) -> list[str]:
        interval_ns = int(self._interval_seconds * 1e9)
        now_ns = time.time_ns()
        return [
            file
            for file, look in looks.items()
            if is_settled(look, self._looks.get(file), now_ns, interval_ns)
        ]

    def _forget(self, existing: set[str]) -> None:
        for known in (self._applied, self._defines, self._problems):
            for file in known.keys() - existing - {"."}:
                del known[file]

    async def _apply_all(self, files: list[str]) -> bool:
        """Apply what isn't yet; whether one more round may find more to do: what a file refers to
        may stand in a later one."""
        failed = False
        progress = False
        for file in files:
            if self._is_applied(file):
                continue
            if await self._apply(file):
                progress = True
            else:
                failed = True
        return failed and progress

    def _is_applied(self, file: str) -> bool:
        """Whether the file is as it was when it was applied, and nothing of it was deleted."""
        same = self._applied.get(file) == self._looks[file]
        return same and all(self._store.get(key) is not None for key in self._defines[file])

    async def _apply(self, file: str) -> bool:
        look = self._looks[file]
        try:
            unit = check_unit(read_manifests(content_of(self._root / file), file))
            elsewhere = defined_elsewhere(file, unit.keys, self._defines)
            if elsewhere:
                raise ProblemsError(*elsewhere)
            await self._store_unit(file, unit)
        except ProblemsError as error:
            await self._tell(file, error.problems)
            return False
        self._applied[file] = look
        self._defines[file] = frozenset(unit.keys)
        self._problems.pop(file, None)
        return True

    async def _store_unit(self, file: str, unit: Unit) -> None:
        documents = [marked(document, file) for document in unit.sendable]
        if unit.values:
            if self._secrets is None:
                raise ProblemsError(_no_place(file))
            await self._applier.apply(documents, FOLDER, dry_run=True)
            for secret, values in unit.values.items():
                self._secrets.keep(secret, values)
        results = await self._applier.apply(documents, FOLDER)
        changed = [f"{result.key} {result.change.value}" for result in results]
        log.info("manifest applied", extra={"file": file, "objects": ", ".join(changed)})

    async def _delete_left_out(self, unread: frozenset[str]) -> None:
        for key, stored in list(left_out(self._store.items(), self._defines, unread)):
            log.info("object is no longer in the folder", extra={"object": str(key)})
            try:
                await self._applier.delete(key, Preconditions(uid=stored.uid))
            except ProblemsError as error:
                log.warning("object not deleted", extra={"problem": str(error)})
            if key.kind == SECRET and self._secrets is not None:
                self._secrets.forget(key)

    async def _tell(self, file: str, problems: tuple[Problem, ...]) -> None:
        told = tuple(map(str, problems))
        if self._problems.get(file) == told:
            return
        self._problems[file] = told
        for problem in told:
            log.error("manifest refused", extra={"problem": problem})
        await self._rejections.record(FOLDER, problems)


def _look(root: Path) -> dict[str, Look]:
    """The files of the folder by their names in it. Raises OSError when it isn't there."""
    root.stat()
    looks = {}
    for file in manifest_files(root):
        stat = file.stat()
        name = file.relative_to(root).as_posix()
        looks[name] = Look(stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return looks


def _unreadable(root: Path, error: OSError) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=f"the folder of manifests can't be read: {error.strerror}; nothing is deleted",
        file=str(root),
        remedy="create it, or correct the setting INFERBUS_SPEC_WATCHER_FOLDER",
    )


def _no_place(file: str) -> Problem:
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        message="there is no place on this machine to keep the values of Secrets",
        file=file,
        remedy="set INFERBUS_SPEC_WATCHER_SECRETS to the platform's folder of secrets",
    )
