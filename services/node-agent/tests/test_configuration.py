"""What containers are given: configuration, secrets, volumes, models."""

import base64
from pathlib import Path

from node_agent_builders import container, deleted, pod
from node_agent_world import World

from tests.support.eventually import eventually

SECRET = "hunter2-token"


def waiting(world: World, uid: str) -> str:
    state = world.container(uid).get("state", {}).get("waiting", {})
    return f"{state.get('reason')}: {state.get('message')}"


async def test_a_container_sees_what_its_manifest_says(world: World) -> None:
    world.configs.put("ConfigMap", "settings", data={"LEVEL": "debug"})
    world.configs.put("Secret", "hub", data={"TOKEN": base64.b64encode(SECRET.encode()).decode()})
    await world.start()
    env = [
        {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "TOKEN"}}},
        {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "BIND", "value": "0.0.0.0:8080"},
    ]
    script = 'echo "$LEVEL ${TOKEN} $WHERE $BIND $1"; exec sleep 600'
    main = container("main", "sh", "-c", script, "sh", args=["$(LEVEL)-$(NONE)"], env=env)
    uid = world.pods.apply(pod("a", main))
    await world.until_ready(uid)
    address = world.status(uid)["podIP"]
    expected = f"debug {SECRET} {address} {address}:8080 debug-$(NONE)\n"
    await eventually(lambda: world.log(uid) == expected)


async def test_a_missing_source_is_waited_for_and_named(world: World) -> None:
    await world.start()
    main = container("main", "sleep", "600", envFrom=[{"configMapRef": {"name": "settings"}}])
    uid = world.pods.apply(pod("a", main))
    await eventually(lambda: "CreateContainerConfigError" in waiting(world, uid))
    assert "no ConfigMap 'settings'" in waiting(world, uid)
    assert world.status(uid)["phase"] == "Pending"
    world.configs.put("ConfigMap", "settings", data={})
    await world.until_ready(uid)
    assert world.container(uid)["restartCount"] == 0


async def test_secrets_stay_where_nobody_else_can_read_them(world: World) -> None:
    world.configs.put("Secret", "hub", stringData={"token": SECRET})
    await world.start()
    main = container(
        "main",
        "sleep",
        "600",
        env=[{"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
    )
    volumes = [{"name": "keys", "secret": {"secretName": "hub"}}]
    uid = world.pods.apply(pod("a", main, volumes=volumes))
    await world.until_ready(uid)
    holding: list[Path] = []
    for path in world.directory.rglob("*"):
        if path.is_file() and SECRET.encode() in path.read_bytes():
            holding.append(path)
    assert holding == [world.directory / "run" / uid / "volumes" / "keys" / "token"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    assert SECRET not in str(world.pods.history)


async def test_a_claim_outlives_its_pods_and_an_empty_directory_does_not(world: World) -> None:
    await world.start()
    volumes = [
        {"name": "weights", "persistentVolumeClaim": {"claimName": "cache"}},
        {"name": "scratch", "emptyDir": {}},
    ]
    document = pod("a", container("main", "sleep", "600"), volumes=volumes)
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    claim = world.directory / "volumes" / "claims" / "default" / "cache"
    scratch = world.directory / "run" / uid / "volumes" / "scratch"
    for folder in (claim, scratch):
        (folder / "file").write_text("kept?")
    world.pods.apply(deleted(document))
    await world.until_gone(uid)
    assert (claim / "file").exists()
    assert not scratch.exists()


def with_downloader(name: str) -> dict:
    init = container(
        "fetch",
        image="kthena/downloader:latest",
        args=["--source", "hf://org/model", "--output-dir", "/models/x"],
    )
    return pod(name, container("main", "sleep", "600"), initContainers=[init])


async def test_a_model_is_waited_for(world: World) -> None:
    await world.start()
    uid = world.pods.apply(with_downloader("a"))
    await eventually(lambda: "hf://org/model" in world.models.asked)
    assert world.status(uid)["phase"] == "Pending"
    assert world.running() == []
    world.models.ready("hf://org/model")
    await world.until_ready(uid)
    assert world.container(uid, "fetch")["state"]["terminated"]["reason"] == "Completed"


async def test_a_failed_download_is_told_and_tried_again(world: World) -> None:
    await world.start(restart_backoff_seconds=0.1)
    uid = world.pods.apply(with_downloader("a"))
    for _ in range(2):
        await eventually(lambda: "hf://org/model" in world.models.asked)
        world.models.failed("hf://org/model")
    await eventually(lambda: world.container(uid, "fetch").get("restartCount", 0) >= 1)
    await eventually(lambda: "hf://org/model" in world.models.asked)
    last = world.container(uid, "fetch")["lastState"]["terminated"]
    assert "no such model" in last["message"]
    world.models.ready("hf://org/model")
    await world.until_ready(uid)


async def test_a_pod_that_waits_for_a_model_can_be_deleted(world: World) -> None:
    await world.start()
    document = with_downloader("a")
    uid = world.pods.apply(document)
    await eventually(lambda: "hf://org/model" in world.models.asked)
    world.pods.apply(deleted(document))
    await world.until_gone(uid)
    world.models.ready("hf://org/model")


async def test_an_orphan_that_comes_back_is_started_anew(world: World) -> None:
    await world.start()
    script = 'trap "" TERM; while :; do sleep 0.05; done'
    document = pod("a", container("main", "sh", "-c", script))
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    (first,) = world.running()
    world.pods.remove(uid)
    record = world.directory / "run" / uid / "pod.json"
    await eventually(lambda: '"orphaned":true' in record.read_text())
    world.pods.apply(document)
    await eventually(lambda: len(world.running()) == 1 and world.running() != [first])
    assert world.pods.finalised == []
