"""Commands against a real bus with a real spec-watcher and console."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.route import ConditionFact, ConditionStatus, RoutesResolved
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied, ScalingDecided, Woken
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import timer_subject, woken_type
from inferbus_shared.bus.bus import Bus, timer
from inferbus_shared.bus.fate import dead_letter
from inferbus_shared.bus.messages import Delivered
from inferbus_shared.bus.store import store
from inferbus_shared.objects.secrets import SecretFiles
from services.autoscaler.tests.builders import WEBHOOK_DEFAULTS, Fleet
from services.autoscaler.tests.builders import policy as policy_facts
from services.cli.tests.conftest import Platform
from services.cli.tests.manifests import BINDING, POLICY, ROUTE, SECRET, SERVING
from services.cli.tests.services_on_the_bus import running
from tests.support.eventually import eventually

CHAT = ObjectKey("ModelServing", "default", "chat")
ROUTE_KEY = ObjectKey("ModelRoute", "default", "chat")


def write(folder: Path, **documents: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


async def test_objects_from_manifest_to_deletion(platform: Platform, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", a=SERVING, b=ROUTE)
    async with running(platform.server, Service.SPEC_WATCHER):
        tried = await platform.run("apply", "-f", folder, "--dry-run")
        assert tried.out == (
            "modelserving/chat created (dry run)\nmodelroute/chat created (dry run)\n"
        )
        assert (await platform.run("get", "ms,modelroutes", "-o", "name")).out == ""

        assert (await platform.run("apply", "-f", folder)).code == 0
        again = await platform.run("apply", folder / "a.yaml", "-f", folder / "b.yaml")
        assert again.out == "modelroute/chat unchanged\nmodelserving/chat unchanged\n"
        (folder / "a.yaml").write_text(SERVING.replace("replicas: 2", "replicas: 3", 1))
        changed = await platform.run("apply", "-f", folder / "a.yaml", "-o", "json")
        assert json.loads(changed.out)[0]["change"] == "configured"

        names = await platform.run("get", "all", "-l", "app=chat", "-o", "name")
        assert names.out == "modelserving/chat\n"
        whole = json.loads((await platform.run("get", "ms/chat", "-o", "json")).out)
        assert whole["spec"]["replicas"] == 3
        assert "managedFields" not in whole["metadata"]
        other = await platform.run("get", "ms", "-n", "other")
        assert (other.out, other.code) == ("", 0)
        assert "nothing found in namespace other" in other.err

        described = await platform.run("describe", "modelserving", "chat")
        assert "Generation:   2\n" in described.out

        async def both_facts() -> bool:
            told = await platform.run("describe", "ms", "chat")
            return "generation 2 by cli, 3 replicas" in told.out

        await eventually(both_facts)

        gone = await platform.run("delete", "-f", folder)
        assert gone.out == "modelserving/chat deleted\nmodelroute/chat deleted\n"
        missing = await platform.run("delete", "ms", "chat")
        assert missing.code == 2
        assert "ModelServing/default/chat: there is no such object" in missing.err
        assert (await platform.run("delete", "ms/chat", "--ignore-not-found")).code == 0

        async def told_as_gone() -> bool:
            last = await platform.run("describe", "ms", "chat")
            return "(gone, or never stored)" in last.out and last.out.endswith(" deleted\n")

        await eventually(told_as_gone)


async def test_a_unit_is_stored_whole_or_not_at_all(platform: Platform, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", a=SERVING, b=BINDING, c=SECRET)
    platform.directory.mkdir(parents=True)
    (platform.directory / "platform.json").write_text('{"nats_port": 1, "router_port": 2}')
    async with running(platform.server, Service.SPEC_WATCHER):
        refused = await platform.run("apply", "-f", folder)
        assert refused.code == 2
        assert f"{folder / 'b.yaml'}:7: AutoscalingPolicyBinding/default/chat: " in refused.err
        assert "spec.policyRef.name" in refused.err
        assert "(value: chat); apply the policy before its binding" in refused.err
        stored = await platform.run("get", "ms,aspb,secrets", "-A", "-o", "name")
        assert (stored.code, stored.out) == (0, "")
        files = SecretFiles(platform.directory / "secrets")
        assert files.read("default", "hub") is None, "its values aren't kept either"

        (folder / "d.yaml").write_text(POLICY)
        assert (await platform.run("apply", "-f", folder)).code == 0
        assert files.read("default", "hub") == {"token": b"not-for-the-bus"}
        kept = await platform.run("get", "secret", "hub", "-o", "yaml")
        assert "not-for-the-bus" not in kept.out
        listed = await platform.run("get", "secrets")
        assert listed.out.splitlines()[1].split()[:2] == ["hub", "1"]

        bound = await platform.run("get", "aspb", "-o", "wide")
        assert bound.out.splitlines()[1].split()[:4] == ["chat", "ModelServing/chat", "1", "9"]

        assert (await platform.run("delete", "secret/hub")).code == 0
        assert not files.read("default", "hub")


async def observe(bus: Bus, uid: str, ready: int) -> None:
    data = WorkloadObserved(uid=uid, generation=1, desired=2, replicas=2, ready=ready, updated=2)
    id_ = event_id("workload.observed", CHAT, f"{uid}{ready}")
    await bus.publish(bus.event(data, CHAT, id=id_))


async def resolve(bus: Bus, uid: str, status: ConditionStatus) -> None:
    condition = ConditionFact(type="Ready", status=status, reason="NoPods", message="none")
    data = RoutesResolved(
        uid=uid, generation=1, conditions=[condition], endpoints=2, ready_endpoints=1
    )
    id_ = event_id("routes.resolved", ROUTE_KEY, f"{uid}{status}")
    await bus.publish(bus.event(data, ROUTE_KEY, id=id_))


async def test_apply_waits_until_all_of_it_serves(platform: Platform, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", a=SERVING, b=ROUTE)
    async with running(platform.server, Service.SPEC_WATCHER):
        applied = await platform.run("apply", "-f", folder, "-o", "json")
        serving, route = (one["uid"] for one in json.loads(applied.out))
        async with (
            platform.server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
            platform.server.bus(Service.ROUTER_CONFIG_PUBLISHER) as publisher,
        ):
            await observe(reconciler, serving, 1)
            await resolve(publisher, route, ConditionStatus.FALSE)
            late = await platform.run("apply", "-f", folder, "--wait", "--timeout", "0.5s")
            assert late.code == 3
            assert "[IB-4010]" in late.err
            assert "ModelServing/default/chat: " in late.err
            assert "1 of 2 ready" in late.err
            assert "NoPods: none" in late.err

            waiting = asyncio.create_task(platform.run("apply", "-f", folder, "--wait"))
            await observe(reconciler, serving, 2)
            await resolve(publisher, route, ConditionStatus.TRUE)
            served = await waiting
        assert served.code == 0
        assert "all of it serves" in served.err
        routes = await platform.run("get", "modelroutes")
        assert routes.out.splitlines()[1].split()[:3] == ["chat", "chat", "1/2"]


def recorded() -> list[ScalingDecided]:
    """Decisions of the autoscaler's own core about `chat`."""
    fleet = Fleet(2, policy_facts(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([20, 90, 200, None, 40])
    assert len(fleet.decisions) > 2
    return fleet.decisions


async def publish_decisions(bus: Bus, decisions: list[ScalingDecided]) -> list[str]:
    """Their ids, in order."""
    ids = []
    for index, data in enumerate(decisions):
        message = bus.event(data, CHAT, id=event_id("scaling.decided", CHAT, f"input {index}"))
        await bus.publish(message)
        ids.append(message.headers["ce-id"])
    return ids


async def set_timer(bus: Bus) -> None:
    """One that doesn't fire while the test runs."""
    due_ms = bus.clock.now_ms() + 3_600_000
    woken = bus.event(
        Woken(due_ms=due_ms, reason="later"), CHAT, event_type=woken_type(bus.service), id="woken-1"
    )
    await store(bus.connection, timer(timer_subject(bus.service, CHAT), woken, due_ms))


async def test_decisions_are_explained_replayed_and_verified(platform: Platform) -> None:
    decisions = recorded()
    async with (
        platform.server.bus(Service.AUTOSCALER) as decider,
        platform.server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
    ):
        ids = await publish_decisions(decider, decisions)
        await set_timer(decider)
        answer = ScalingApplied(
            decision_id=ids[-1], outcome=ApplyOutcome.CONFLICT, replicas=2, generation=9, uid="u"
        )
        await reconciler.publish(reconciler.event(answer, CHAT, id="answer-1"))
        async with running(platform.server, Service.CONSOLE):
            told = await platform.run("why", "chat")
            assert told.code == 0, told.err
            assert ids[-1] in told.out
            assert "it is decided again" in told.out
            assert "--sequence" in told.out
            several = json.loads(
                (await platform.run("why", "ms/chat", "--limit", 9, "-o", "json")).out
            )
            assert [one["id"] for one in several] == ids[::-1]
            sentence = await platform.run("why-not", "chat")
            assert sentence.out.startswith("ModelServing/default/chat is to have ")
            asked = await platform.run("why-not", "chat", 999, "-o", "json")
            (answer_to_it,) = json.loads(asked.out)
            assert (answer_to_it["wanted"], answer_to_it["keeper"]) == (999, "load")
            assert answer_to_it["headline"].endswith(", not 999")

        shown = await platform.run("replay", "--target", "ms/chat")
        lines = shown.out.splitlines()
        types = [line.split()[1] for line in lines]
        assert sorted(types) == ["scaling.applied", *["scaling.decided"] * len(ids)]
        part = await platform.run(
            "replay", "--stream", "DECISIONS", "--sequence", "2..3", "-o", "json"
        )
        assert [json.loads(line)["id"] for line in part.out.splitlines()] == ids[1:3]

        verified = await platform.run("replay", "--verify")
        count = len(ids)
        assert verified.out == f"{count} decisions, {count} identical, 0 different\n"
        assert verified.code == 0

        forged = decisions[0].model_copy(update={"desired": 99})
        await publish_forged(decider, forged)
        found = await platform.run("replay", "--verify", "-o", "json")
        assert found.code == 1
        report = json.loads(found.out)
        assert (report["decisions"], report["identical"]) == (count + 1, count)
        (difference,) = report["different"][0]["differences"]
        assert (difference["field"], difference["recorded"]) == ("desired", 99)
        assert difference["recomputed"] == decisions[0].desired
        told = await platform.run("replay", "--verify")
        assert f"desired: 99 → {decisions[0].desired}" in told.out


async def publish_forged(bus: Bus, data: ScalingDecided) -> None:
    await bus.publish(bus.event(data, CHAT, id=event_id("scaling.decided", CHAT, "forged")))


async def poison(bus: Bus) -> None:
    """An event whose body doesn't fit its type, from a writer that may write there."""
    good = bus.event(recorded()[0], CHAT, id="poisoned")
    await bus.connection.client.jetstream().publish(
        subject("scaling.decided", CHAT), b'{"current":"many"}', headers=good.headers
    )


async def test_a_poison_event_is_shown_and_hides_no_other(platform: Platform) -> None:
    async with platform.server.bus(Service.AUTOSCALER) as decider:
        await poison(decider)
        ids = await publish_decisions(decider, recorded())
    told = await platform.run("replay", "--stream", "DECISIONS")
    first, *rest = told.out.splitlines()
    assert "unreadable" in first
    assert "current" in first
    assert len(rest) == len(ids)
    verified = await platform.run("replay", "--verify")
    assert verified.code == 1
    assert "[IB-3004]" in verified.err
    assert "DECISIONS:1" in verified.err
    assert '(value: {"current":"many"})' in verified.err
    assert f"{len(ids)} identical" in verified.out


async def test_orders_become_events_that_tap_shows(platform: Platform, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", a=SERVING)
    async with running(platform.server, Service.SPEC_WATCHER, Service.CONSOLE):
        assert (await platform.run("apply", "-f", folder)).code == 0
        async with platform.server.bus(Service.WORKLOAD_RECONCILER) as reconciler:
            await observe(reconciler, "u", 2)
        live = await platform.program(
            "tap", "control", "--count", 2, "--target", "chat", "-o", "json"
        )

        async def frozen() -> bool:
            told = await platform.run("freeze", "ms/chat", "--why", "a test", "--for", "1h")
            return told.code == 0 and live.returncode is not None

        await eventually(frozen)
        output, _ = await live.communicate()
        said = [json.loads(line) for line in output.splitlines()]
        assert [one["type"] for one in said] == ["control.frozen"] * 2
        assert said[0]["data"]["why"] == "a test"
        assert said[0]["data"]["untilMs"] > 0

        everywhere = await platform.run("freeze", "ns/default", "--why", "x")
        assert everywhere.out.startswith("Namespace/_/default frozen (")
        nowhere = await platform.run("freeze", "ns/defualt", "--why", "x")
        assert nowhere.code == 2
        assert "namespaces with objects: default" in nowhere.err
        unknown = await platform.run("thaw", "ms/chta", "--why", "x")
        assert unknown.code == 2
        assert "did you mean ModelServing/default/chat?" in unknown.err
        assert (await platform.run("thaw", "all", "--why", "done")).code == 0
        nothing = await platform.run("approve", "ms/chat", "--why", "x")
        assert nothing.code == 2
        assert "there is no such decision" in nothing.err

        top = await platform.run("top", "-o", "json")
        assert json.loads(top.out)["targets"][0]["target"] == str(CHAT)
        status = await platform.run("status", "-o", "json")
        assert status.code == 0, status.err
        bus: dict[str, Any] = json.loads(status.out)["bus"]
        assert {row["name"] for row in bus["streams"]} >= {"FACTS", "DECISIONS", "KV_objects"}
        assert bus["missing"] == []


async def test_dead_letters_are_tapped_with_their_reason(platform: Platform) -> None:
    async with platform.server.bus(Service.AUTOSCALER) as decider:
        good = decider.event(recorded()[0], CHAT, id="rejected")
        refused = Delivered(good.subject, good.headers, good.body, "DECISIONS", 1, 0)
        letter = dead_letter(Service.AUTOSCALER, refused, "no such target", "autoscaler-p0")
        await store(decider.connection, letter)
    for words in (("--dead",), ("dlq.>",)):
        told = await platform.run("tap", *words, "--count", 1)
        assert "refused by autoscaler: no such target" in told.out


async def test_provisioning_twice_changes_nothing(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--nats", platform.server.url, "--credentials", platform.server.credentials)
    options = ("--storage", platform.server.storage_bytes, "--clock-rate", 5)
    monkeypatch.delenv("INFERBUS_NATS_URL")
    done = await platform.run("provision", *where, *options, "-o", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["created"] == []
    added = await platform.run("provision", *where, *options, "--node", "gpu-1")
    assert "model-downloader-gpu-1 created\n" in added.out
    refused = await platform.run("provision", "--nats", platform.server.url)
    assert refused.code == 3
    assert "[IB-3003]" in refused.err
    monkeypatch.setenv("INFERBUS_NATS_URL", platform.server.url)
    silent = await platform.run("status")
    assert silent.code == 3
    assert "the bus answers, the console doesn't" in silent.err
