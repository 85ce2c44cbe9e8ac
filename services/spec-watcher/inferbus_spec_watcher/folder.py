"""Applies a folder of manifests and keeps it applied.

One file is one unit, stored as a whole or not at all. What a file no longer holds goes, with the
file or without. A bad file is told once for each change of what is wrong with it, and stops no
other; what it defined before stays. Invariant: nothing is deleted while any file of the folder is
being written, replaced or removed, or the folder can't be read.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import SECRET
from inferbus_shared.bus.membership import Membership
from inferbus_shared.clock import real_now_ms
from inferbus_shared.manifests import read_manifests
from inferbus_shared.objects.secrets import SecretFiles
from inferbus_shared.objects.unit import Unit, check_unit
from inferbus_spec_watcher.folder_files import FileMovingError, look_around, read_unchanged
from inferbus_spec_watcher.policy_folder import (
    FOLDER,
    Look,
    Manifests,
    defined_elsewhere,
    is_left_out,
    is_settled,
    marked,
)
from inferbus_spec_watcher.ports import Hand, Objects
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings

log = logging.getLogger("inferbus.spec-watcher")

_WHOLE_FOLDER = "."
"""Stands for the folder where a file is named."""


class Folder:
    """The folder of one instance; only the active one applies it."""

    def __init__(
        self,
        root: Path,
        settings: SpecWatcherSettings,
        store: Objects,
        hand: Hand,
        rejections: Rejections,
        membership: Membership,
    ) -> None:
        self._root = root
        self._interval_seconds = settings.folder_interval_seconds
        self._secrets = SecretFiles(settings.secrets) if settings.secrets else None
        self._store = store
        self._hand = hand
        self._rejections = rejections
        self._membership = membership
        self._looks: dict[str, Look] = {}
        self._moving: set[str] = set()
        self._applied: dict[str, Look] = {}
        self._defines: dict[str, frozenset[ObjectKey]] = {}
        self._problems: dict[str, tuple[str, ...]] = {}
        self._right: set[str] = set()

    async def run(self) -> None:
        """Look at the folder again and again until cancelled."""
        await self._store.ready()
        while True:
            if self._membership.is_active:
                await self._round()
            await asyncio.sleep(self._interval_seconds)

    async def _round(self) -> None:
        try:
            looks = look_around(self._root)
        except OSError as error:
            await self._tell(_WHOLE_FOLDER, (_unreadable(self._root, error),))
            return
        self._note_right(_WHOLE_FOLDER)
        self._notice(looks)
        await self._apply_all([file for file in looks if file not in self._moving])
        if not self._moving:
            await self._delete_left_out()

    def _notice(self, looks: dict[str, Look]) -> None:
        """A file that has gone counts for one more round: many a program removes what it is about
        to write anew."""
        before, self._looks = self._looks, looks
        interval_ms = int(self._interval_seconds * 1000)
        now_ms = real_now_ms()
        going = before.keys() - looks.keys()
        self._moving = going | {
            file
            for file, look in looks.items()
            if not is_settled(look, before.get(file), now_ms, interval_ms)
        }
        self._forget_all_but(looks.keys() | going)

    def _forget_all_but(self, existing: Collection[str]) -> None:
        for known in (self._applied, self._defines, self._problems):
            for file in known.keys() - existing:
                del known[file]
        self._right &= {*existing, _WHOLE_FOLDER}

    async def _apply_all(self, files: Sequence[str]) -> None:
        """Files that are refused are tried again as long as others are not: what one refers to may
        stand in a later one."""
        due = [file for file in files if not self._is_applied(file)]
        refused = await self._refused(due)
        while 0 < len(refused) < len(due):
            due = list(refused)
            refused = await self._refused(due)
        for file, problems in refused.items():
            await self._tell(file, problems)

    async def _refused(self, files: Sequence[str]) -> dict[str, tuple[Problem, ...]]:
        refused = {}
        for file in files:
            try:
                await self._apply(file)
            except FileMovingError:
                self._moving.add(file)
            except ProblemsError as error:
                refused[file] = error.problems
            else:
                self._note_right(file)
        return refused

    def _is_applied(self, file: str) -> bool:
        """Whether the file is as it was when it was applied, and nothing of it was deleted."""
        same = self._applied.get(file) == self._looks[file]
        return same and all(self._store.get(key) is not None for key in self._defines[file])

    async def _apply(self, file: str) -> None:
        look = self._looks[file]
        unit = check_unit(read_manifests(read_unchanged(self._root / file, look), file))
        elsewhere = defined_elsewhere(file, unit.keys, self._defines)
        if elsewhere:
            raise ProblemsError(*elsewhere)
        await self._store_unit(file, unit)
        self._applied[file] = look
        self._defines[file] = frozenset(unit.keys)

    async def _store_unit(self, file: str, unit: Unit) -> None:
        documents = [marked(document, file) for document in unit.sendable]
        if unit.values:
            if self._secrets is None:
                raise ProblemsError(_no_place(file))
            await self._hand.apply(documents, FOLDER, dry_run=True)
            for secret, values in unit.values.items():
                self._secrets.keep(secret, values)
        results = await self._hand.apply(documents, FOLDER)
        changed = [f"{result.key} {result.change.value}" for result in results]
        log.info("manifest applied", extra={"file": file, "objects": ", ".join(changed)})

    async def _delete_left_out(self) -> None:
        defined = frozenset[ObjectKey]().union(*self._defines.values())
        manifests = Manifests(defined, self._looks.keys() - self._defines.keys())
        for key, stored in list(self._store.items()):
            if is_left_out(manifests, key, stored):
                await self._delete(key, manifests)

    async def _delete(self, key: ObjectKey, manifests: Manifests) -> None:
        log.info("object is no longer in the folder", extra={"object": str(key)})
        try:
            await self._hand.delete_if(key, partial(is_left_out, manifests, key))
        except ProblemsError as error:
            log.warning("object is deleted in the next round", extra={"problem": str(error)})
            return
        if key.kind == SECRET and self._secrets is not None and self._store.get(key) is None:
            self._secrets.forget(key)

    async def _tell(self, file: str, problems: tuple[Problem, ...]) -> None:
        told = tuple(map(str, problems))
        if self._problems.get(file) == told:
            return
        self._problems[file] = told
        for problem in told:
            log.error("manifest refused", extra={"problem": problem})
        again = file in self._right
        await self._rejections.record(FOLDER, problems, unit=file, again=again)

    def _note_right(self, file: str) -> None:
        """From now on the same mistake is another one; before, a restart may have found it anew."""
        self._problems.pop(file, None)
        self._right.add(file)


def _unreadable(root: Path, error: OSError) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=f"the folder of manifests can't be read: {error.strerror}; nothing is deleted",
        file=str(error.filename or root),
        remedy="create it, or correct the setting INFERBUS_SPEC_WATCHER_FOLDER",
    )


def _no_place(file: str) -> Problem:
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        message="there is no place on this machine to keep the values of Secrets",
        file=file,
        remedy="set INFERBUS_SPEC_WATCHER_SECRETS to the platform's folder of secrets",
    )
