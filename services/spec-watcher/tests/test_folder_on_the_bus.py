"""A folder of manifests on a real server: what stands in it is there, what left it goes."""

from functools import partial
from pathlib import Path

import pytest
from folder_world import (
    count_of_rejections,
    holds,
    is_told,
    key,
    model,
    names,
    uid,
    watching,
)
from watching import (
    apply,
    delete,
    find,
    gone,
    last_sequence,
    spec_watcher,
    subjects,
    there,
    write,
)

from inferbus_contracts.events.spec import SpecRejected
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.objects.secrets import SecretFiles
from tests.support.eventually import eventually
from tests.support.nats import NatsServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "manifests"
    found.mkdir()
    return found


async def test_files_are_applied_changed_and_removed(nats_server: NatsServer, folder: Path) -> None:
    write(folder / "a.yaml", model("a"), model("b"))
    (folder / "team").mkdir()
    write(folder / "team" / "c.yaml", model("c"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b", "c")
        kept = await uid(bus, "b")
        write(folder / "a.yaml", model("b", family="other"))
        await holds(bus, "b", "c")
        (changed,) = await there(bus, key("b"))
        assert changed["spec"]["familyName"] == "other"
        assert changed["metadata"]["uid"] == kept
        (folder / "a.yaml").unlink()
        await holds(bus, "c")


async def test_an_object_that_moves_between_files_stays_the_same_one(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "b.yaml", model("a"), model("moves"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "moves")
        before = await uid(bus, "moves")
        write(folder / "a.yaml", model("moves"))
        write(folder / "b.yaml", model("a"), model("new"))
        await holds(bus, "a", "moves", "new")
        (folder / "a.yaml").rename(folder / "c.yaml")
        write(folder / "b.yaml", model("a"))
        await holds(bus, "a", "moves")
        assert await uid(bus, "moves") == before


async def test_what_somebody_deletes_by_hand_comes_back(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"))
    async with watching(nats_server, folder) as bus:
        before = await uid(bus, "a")
        await delete(bus, key("a"))
        await eventually(lambda: is_another(bus, "a", before))


async def is_another(bus: Bus, name: str, before: str) -> bool:
    return await uid(bus, name) != before


async def test_objects_of_others_stay_and_so_does_what_others_have_a_part_in(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"), model("shared"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "shared")
        await apply(bus, model("by-hand"), model("shared"))
        (folder / "a.yaml").unlink()
        await holds(bus, "by-hand", "shared")


async def test_a_bad_file_is_told_once_and_stops_no_other(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("before"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "before")
        broken = model("a")
        broken["spec"]["family"] = "opt"
        write(folder / "a.yaml", model("other"), broken)
        write(folder / "b.yaml", model("b"))
        await holds(bus, "before", "b")
        await eventually(lambda: is_told(nats_server, 1))
        write(folder / "c.yaml", model("c"))
        await holds(bus, "before", "b", "c")
        assert await count_of_rejections(nats_server) == 1
    async with watching(nats_server, folder) as bus:
        write(folder / "d.yaml", model("d"))
        await holds(bus, "before", "b", "c", "d")
        assert await count_of_rejections(nats_server) == 1
        (folder / "a.yaml").write_text("a: b: c")
        await eventually(lambda: is_told(nats_server, 2))
        assert await names(bus) == {"before", "b", "c", "d"}
        write(folder / "a.yaml", model("a"))
        await holds(bus, "a", "b", "c", "d")


async def test_a_rejection_names_file_line_field_and_what_to_do(
    nats_server: NatsServer, folder: Path
) -> None:
    broken = model("a")
    broken["spec"]["family"] = "opt"
    write(folder / "a.yaml", broken)
    async with watching(nats_server, folder), nats_server.bus(Service.CONSOLE) as bus:
        follower = bus.follow("spec.rejected", Start.last_per_subject())
        async for event in bus.events(follower):
            assert isinstance(event.data, SpecRejected)
            (problem,) = event.data.problems
            assert event.data.manager == "folder"
            assert (problem.file, problem.field) == ("a.yaml:6", "spec.family")
            assert problem.remedy
            break


async def test_the_order_of_files_makes_no_difference(
    nats_server: NatsServer, folder: Path
) -> None:
    group = "workload.serving.volcano.sh/v1alpha1"
    binding = {
        "apiVersion": group,
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "scale"},
        "spec": {
            "policyRef": {"name": "scale"},
            "homogeneousTarget": {
                "target": {"targetRef": {"kind": "ModelServing", "name": "chat"}},
                "minReplicas": 1,
                "maxReplicas": 3,
            },
        },
    }
    metrics = [{"metricName": "vllm:num_requests_running", "targetValue": "2"}]
    policy = {
        "apiVersion": group,
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "scale"},
        "spec": {"metrics": metrics},
    }
    write(folder / "a-binding.yaml", binding)
    write(folder / "b-policy.yaml", policy)
    async with watching(nats_server, folder) as bus:
        await there(bus, "AutoscalingPolicyBinding/default/scale")
        assert await count_of_rejections(nats_server) == 0


async def test_an_object_in_two_files_is_told_and_stays_that_of_the_first(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"))
    write(folder / "b.yaml", model("a", family="other"), model("b"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a")
        await eventually(lambda: is_told(nats_server, 1))
        (folder / "a.yaml").unlink()
        await holds(bus, "a", "b")
        (found,) = await there(bus, key("a"))
        assert found["spec"]["familyName"] == "other"


async def test_secrets_leave_no_value_on_the_bus(nats_server: NatsServer, folder: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hub"},
        "stringData": {"token": "hush-hush-plain"},
        "data": {"other": "aHVzaC1odXNoLWVuY29kZWQ="},
    }
    write(folder / "a.yaml", secret, model("a"))
    broken = {**secret, "metadata": {"name": "broken"}, "stringDate": {"x": "hush-hush-broken"}}
    write(folder / "b.yaml", broken)
    kept = SecretFiles(folder.parent / "secrets")
    async with watching(nats_server, folder) as bus:
        (stored,) = await there(bus, "Secret/default/hub")
        assert stored["metadata"]["annotations"]["inferbus.dev/secret-keys"] == "other,token"
        values = {"token": b"hush-hush-plain", "other": b"hush-hush-encoded"}
        assert kept.read("default", "hub") == values
        await eventually(lambda: is_told(nats_server, 1))
        texts = await everything_on_the_bus(nats_server)
        assert any(b"OpenModel" in text for text in texts)
        for value in (b"hush-hush", b"aHVzaC1odXNo"):
            assert [text for text in texts if value in text] == []
        (folder / "a.yaml").unlink()
        await gone(bus, "Secret/default/hub")
        await eventually(lambda: kept.read("default", "hub") is None)


async def everything_on_the_bus(server: NatsServer) -> list[bytes]:
    """What the server holds on disk of each stream."""
    async with server.connection() as connection:
        await api(connection, "STREAM.NAMES")
    return [file.read_bytes() for file in server.directory.rglob("*.blk")]


async def test_a_secret_has_to_have_a_place(nats_server: NatsServer, folder: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hub"},
        "stringData": {"token": "x"},
    }
    write(folder / "a.yaml", secret)
    async with (
        spec_watcher(nats_server, folder=folder),
        nats_server.bus(Service.CLI) as bus,
    ):
        await eventually(lambda: is_told(nats_server, 1))
        assert await find(bus, "Secret/default/hub") is None


async def test_a_restart_adds_nothing(nats_server: NatsServer, folder: Path) -> None:
    write(folder / "a.yaml", model("a"), model("b"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b")
        await eventually(lambda: has_facts_of(nats_server, "a", "b"))
    before = await last_sequence(nats_server, "FACTS")
    for round_ in range(2):
        async with watching(nats_server, folder) as bus:
            write(folder / "c.yaml", model(f"c{round_}"))
            await holds(bus, "a", "b", f"c{round_}")
            await eventually(partial(has_facts_of, nats_server, f"c{round_}"))
    facts = await subjects(nats_server, "spec.changed")
    about = {subject.rpartition(".")[2]: count for subject, count in facts.items()}
    assert (about["a"], about["b"]) == (1, 1)
    assert await last_sequence(nats_server, "FACTS") > before


async def has_facts_of(server: NatsServer, *names: str) -> bool:
    facts = await subjects(server, "spec.changed")
    return set(names) <= {subject.rpartition(".")[2] for subject in facts}


async def test_a_file_removed_while_nobody_looked_takes_its_objects(
    nats_server: NatsServer, folder: Path
) -> None:
    write(folder / "a.yaml", model("a"))
    write(folder / "b.yaml", model("b"))
    write(folder / "c.yaml", model("c"))
    async with watching(nats_server, folder) as bus:
        await holds(bus, "a", "b", "c")
    (folder / "a.yaml").unlink()
    (folder / "b.yaml").write_text("a: b: c")
    async with watching(nats_server, folder) as bus:
        await holds(bus, "b", "c")
