"""A folder that is being changed or can't be read, on a real server: nothing is deleted."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from folder_world import holds, is_told, key, model, names, uid, watching
from watching import there, write

from inferbus_spec_watcher import folder as folder_module
from inferbus_spec_watcher.folder_files import look_around
from inferbus_spec_watcher.policy_folder import Look
from tests.support.eventually import eventually
from tests.support.nats import NatsServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "manifests"
    found.mkdir()
    return found


async def test_a_file_that_is_being_written_deletes_nothing(
    nats_server: NatsServer, folder: Path
) -> None:
    file = folder / "a.yaml"
    write(file, model("a"), model("b"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b")
        kept = await uid(bus, "b")
        file.write_text(yaml.safe_dump(model("a")))
        async with being_written(file):
            write(folder / "c.yaml", model("c"))
            await there(bus, key("c"))
            assert await uid(bus, "b") == kept
            file.write_text(yaml.safe_dump_all([model("a"), model("b"), model("d")]))
        await holds(bus, "a", "b", "c", "d")
        assert await uid(bus, "b") == kept


async def test_an_object_on_its_way_into_a_file_that_is_being_written_stays(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"), model("moves"))
    write(folder / "b.yaml", model("b"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b", "moves")
        before = await uid(bus, "moves")
        async with being_written(folder / "b.yaml"):
            write(folder / "a.yaml", model("a"))
            write(folder / "c.yaml", model("c"))
            await there(bus, key("c"))
            write(folder / "d.yaml", model("d"))
            await there(bus, key("d"))
            assert await uid(bus, "moves") == before
        write(folder / "b.yaml", model("b"), model("moves"))
        (folder / "c.yaml").unlink()
        await holds(bus, "a", "b", "d", "moves")
        assert await uid(bus, "moves") == before


async def test_a_file_that_is_away_for_a_moment_takes_nothing_along(
    nats_server: NatsServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many a program removes a file before it writes it anew."""
    away: list[str] = []

    def forgetful(root: Path) -> dict[str, Look]:
        hidden = away.pop() if away else None
        return {name: look for name, look in look_around(root).items() if name != hidden}

    monkeypatch.setattr(folder_module, "look_around", forgetful)
    write(folder / "a.yaml", model("a"))
    write(folder / "b.yaml", model("b"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b")
        before = await uid(bus, "a")
        away.append("a.yaml")
        await eventually(lambda: not away)
        write(folder / "c.yaml", model("c"))
        await holds(bus, "a", "b", "c")
        assert await uid(bus, "a") == before


@contextlib.asynccontextmanager
async def being_written(file: Path) -> AsyncIterator[None]:
    """Its time changes all the while, as that of a file that somebody writes to does."""
    times = itertools.count(2**62)

    def touch() -> None:
        now_ns = next(times)
        os.utime(file, ns=(now_ns, now_ns))

    async def keep_touching() -> None:
        while True:
            touch()
            await asyncio.sleep(0.005)

    touch()
    touching = asyncio.create_task(keep_touching())
    try:
        yield
    finally:
        touching.cancel()


async def test_a_folder_that_is_not_there_deletes_nothing_and_is_told(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"))
    missing = folder.parent / "missing"
    async with watching(nats_server, missing) as bus:
        await eventually(lambda: is_told(nats_server, 1))
        move(folder, missing)
        before = await uid(bus, "a")
        move(missing, folder)
        await eventually(lambda: is_told(nats_server, 2))
        assert await uid(bus, "a") == before
        move(folder, missing)
        write(missing / "b.yaml", model("b"))
        await holds(bus, "a", "b")
        assert await uid(bus, "a") == before


async def test_a_file_in_place_of_the_folder_deletes_nothing_and_is_told(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"))
    async with watching(nats_server, folder) as bus:
        before = await uid(bus, "a")
        move(folder, folder.parent / "away")
        write(folder, model("b"))
        await eventually(lambda: is_told(nats_server, 1))
        assert await uid(bus, "a") == before
        assert await names(bus) == {"a"}


def move(source: Path, destination: Path) -> None:
    source.rename(destination)


async def test_a_folder_that_cannot_be_listed_deletes_nothing(
    nats_server: NatsServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = folder / "team"
    locked.mkdir()
    write(locked / "a.yaml", model("a"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a")
        scandir = os.scandir

        def refusing(path: str | Path) -> object:
            if Path(path) == locked:
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)
        await eventually(lambda: is_told(nats_server, 1))
        assert await names(bus) == {"a"}
