"""A resource kept in memory, the same on the fake API server and on a real one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, POD, ApiResource
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.kube.transport import MERGE_PATCH
from shared.tests.kube.conftest import settings_of
from shared.tests.kube.documents import config_map, definition, pod
from shared.tests.kube.running import running
from tests.fakes.kubernetes.faults import Answer, Cut, Page
from tests.support.eventually import eventually
from tests.support.kube import ADMIN, KubeServer
from tests.support.kube_apiserver import running_apiserver


def labels(document: Mapping[str, Any]) -> dict[str, str]:
    return dict(document["metadata"].get("labels") or {})


def workload(document: Mapping[str, Any]) -> str | None:
    return labels(document).get("of")


@contextlib.asynccontextmanager
async def following(
    client: KubeClient, resource: ApiResource = POD, **more: Any
) -> AsyncIterator[Reflector[dict[str, str]]]:
    reflector: Reflector[dict[str, str]] = Reflector(
        client, resource, read=labels, index=workload, **more
    )
    async with running(reflector):
        yield reflector


def names(reflector: Reflector[dict[str, str]], namespace: str = "") -> list[str]:
    return [key.name for key, _ in reflector.items(namespace)]


async def test_it_holds_what_was_there_and_follows_what_changes(
    kube: KubeClient, namespace: str
) -> None:
    await kube.create(POD, pod(namespace, "before", of="x"))
    told: list[ObjectKey] = []
    async with following(kube, namespaces=(namespace,)) as reflector:
        reflector.on_change(told.append)
        await reflector.ready()
        assert names(reflector) == ["before"]

        await kube.create(POD, pod(namespace, "after", of="x"))
        await eventually(lambda: names(reflector) == ["after", "before"])
        assert [key.name for key, _ in reflector.by_index("x")] == ["after", "before"]

        moved = {"metadata": {"labels": {"of": "y"}}}
        await kube.patch(POD, namespace, "after", moved, content_type=MERGE_PATCH)
        await eventually(lambda: reflector.by_index("y"))
        assert [key.name for key, _ in reflector.by_index("x")] == ["before"]

        await kube.delete(POD, namespace, "before", grace_period_seconds=0)
        await eventually(lambda: names(reflector) == ["after"])
        assert reflector.by_index("x") == ()
        assert set(told) == {POD.key(namespace, "before"), POD.key(namespace, "after")}
        assert reflector.problem is None


async def test_an_object_that_leaves_the_selector_is_gone(kube: KubeClient, namespace: str) -> None:
    await kube.create(POD, pod(namespace, "a", mine="yes"))
    await kube.create(POD, pod(namespace, "b"))
    selection = {"namespaces": (namespace,), "label_selector": "mine=yes"}
    async with following(kube, **selection) as reflector:
        await reflector.ready()
        assert names(reflector) == ["a"]
        body = {"metadata": {"labels": {"mine": None}}}
        await kube.patch(POD, namespace, "a", body, content_type=MERGE_PATCH)
        await eventually(lambda: names(reflector) == [])


async def test_own_writes_are_seen_before_the_watch_tells_them(
    kube: KubeClient, namespace: str
) -> None:
    async with following(kube, namespaces=(namespace,)) as reflector:
        await reflector.ready()
        for number in range(30):
            reflector.observe(await kube.create(POD, pod(namespace, f"p{number:02}")))
            assert len(reflector) == number + 1
        ended = [
            await kube.delete(POD, namespace, f"p{number:02}", grace_period_seconds=0)
            for number in range(0, 30, 2)
        ]
        await eventually(lambda: len(reflector) == 15)
        for answer in ended:
            reflector.observe(answer)
        assert len(reflector) == 15


async def test_only_the_namespaces_of_the_list_are_followed(
    kube: KubeClient, namespace: str
) -> None:
    async with following(kube, CONFIG_MAP, namespaces=(namespace, "default")) as reflector:
        await reflector.ready()
        await kube.create(CONFIG_MAP, config_map(namespace, "a"))
        await eventually(lambda: "a" in names(reflector, namespace))
        assert {key.namespace for key, _ in reflector.items()} <= {namespace, "default"}


async def test_a_crd_that_comes_and_goes(kube_server: KubeServer, namespace: str) -> None:
    settings = settings_of(kube_server, discovery_poll_seconds=0.05)
    group = f"{namespace}.example.com"
    definition_name = f"widgets.{group}"
    resource = ApiResource(group, "v1", "widgets", "Widget")
    widget = {
        "apiVersion": resource.api_version,
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": namespace},
    }
    async with KubeClient(settings) as kube, following(kube, resource) as reflector:
        await reflector.ready()
        assert not reflector.served
        assert reflector.problem is None
        for _ in range(2):
            await kube.create(CUSTOM_RESOURCE_DEFINITION, definition(group))
            await eventually(lambda: reflector.served)
            await eventually(lambda: kube.create(resource, widget))
            await eventually(lambda: names(reflector) == ["w"])
            await kube.delete(CUSTOM_RESOURCE_DEFINITION, "", definition_name)
            await eventually(lambda: not reflector.served, timeout=40)
            assert names(reflector) == []
            await eventually(lambda: _gone(kube, definition_name))


async def _gone(kube: KubeClient, name: str) -> bool:
    return await kube.get(CUSTOM_RESOURCE_DEFINITION, "", name) is None


async def test_what_happens_while_the_server_is_away_is_found_out(
    fake_kube_server: KubeServer,
) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    async with KubeClient(settings_of(fake_kube_server)) as kube, following(kube) as reflector:
        await kube.create(POD, pod("default", "stays"))
        await kube.create(POD, pod("default", "goes"))
        await eventually(lambda: names(reflector) == ["goes", "stays"])
        await fake.stop()
        await eventually(lambda: reflector.problem)
        await fake.start()
        await kube.delete(POD, "default", "goes", grace_period_seconds=0)
        await kube.create(POD, pod("default", "comes"))
        await eventually(lambda: names(reflector) == ["comes", "stays"])
        await eventually(lambda: reflector.problem is None)


@pytest.mark.slow
@pytest.mark.kube
async def test_a_real_server_that_is_killed_and_comes_back_is_followed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_apiserver() as real:
        token = tmp_path / "token"
        token.write_text(real.tokens[ADMIN])
        settings = KubeSettings(
            server=real.url, token_file=token, ca_file=real.certificate_authority
        )
        async with KubeClient(settings) as kube, following(kube) as reflector:
            await kube.create(POD, pod("default", "goes"))
            await kube.create(POD, pod("default", "stays"))
            await eventually(lambda: names(reflector) == ["goes", "stays"])
            real.kill()
            await eventually(lambda: reflector.problem)
            await asyncio.to_thread(real.start)
            await kube.delete(POD, "default", "goes", grace_period_seconds=0)
            await kube.create(POD, pod("default", "comes"))
            await eventually(lambda: names(reflector) == ["comes", "stays"], timeout=60)
    told = [one.getMessage() for one in caplog.records if one.name == "inferbus.kube"]
    assert told[:2] == ["out of service", "back in service"]


async def test_history_that_was_compacted_away_is_listed_again(
    fake_kube_server: KubeServer,
) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    async with KubeClient(settings_of(fake_kube_server)) as kube, following(kube) as reflector:
        await kube.create(POD, pod("default", "goes"))
        await eventually(lambda: names(reflector) == ["goes"])
        await fake.stop()
        await fake.start()
        fake.faults.add(Answer(500), verb="watch", times=1)
        await kube.delete(POD, "default", "goes", grace_period_seconds=0)
        await kube.create(POD, pod("default", "comes"))
        fake.compact()
        await eventually(lambda: names(reflector) == ["comes"])


@pytest.mark.slow
async def test_faults_of_every_kind_end_with_the_truth(fake_kube_server: KubeServer) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    settings = settings_of(fake_kube_server, page_size=2)
    async with KubeClient(settings) as kube:
        for number in range(5):
            await kube.create(POD, pod("default", f"p{number}"))
        fake.faults.add(Cut(), verb="list", resource="pods", skip=1)
        fake.faults.add(Page(), verb="list", resource="pods")
        fake.faults.add(Answer(410, reason="Expired"), verb="list", resource="pods", skip=2)
        fake.faults.add(Cut(), verb="watch", resource="pods")
        fake.faults.add(Page(200), verb="watch", resource="pods")
        async with following(kube) as reflector:
            await reflector.ready()
            assert names(reflector) == [f"p{number}" for number in range(5)]
            await kube.create(POD, pod("default", "p5"))
            await eventually(lambda: len(reflector) == 6)
            assert fake.faults.active == []
