"""The reconciler on k3s, a whole Kubernetes: its scheduler binds, its kubelet runs, its collector
collects.

Needs a Docker engine that answers and may start privileged containers with the host's cgroups, and
the images `IMAGE` (pulled unless it is there) and `PAUSE`, which k3s itself pulls as the sandbox of
every pod; so a registry, or an engine and a k3s that have both. Skipped elsewhere, saying why.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.services import Service
from tests.support.docker_engine import docker_engine
from tests.support.eventually import eventually
from tests.support.kube import ADMIN, KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_fleet import KubeFleet, install_definitions, serving
from tests.support.kube_manifests import manifests, place_of
from tests.support.kube_passes import Passes, kube_substrate

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

IMAGE = "rancher/k3s:v1.31.4-k3s1"
PAUSE = "rancher/mirrored-pause:3.6"
RUNNING_SECONDS = 180.0
ACCOUNTS = "inferbus"
"""The namespace of the services' accounts, and of the one that tests use as the admin's."""


@pytest.fixture
def k3s() -> Iterator[Any]:
    """A k3s that is ready."""
    containers: Any = pytest.importorskip("testcontainers.community.k3s")
    with docker_engine(IMAGE), containers.K3SContainer(IMAGE) as container:
        yield container


def kubectl(k3s: Any, *words: str) -> str:
    """What k3s's own kubectl says, as the admin of the cluster."""
    code, said = k3s.get_wrapped_container().exec_run(["kubectl", *words])
    assert code == 0, said.decode()
    return str(said.decode().strip())


def server_of(k3s: Any, folder: Path) -> KubeServer:
    """The API server, with tokens for the admin and for the reconciler."""
    (cluster,) = yaml.safe_load(k3s.config_yaml())["clusters"]
    authority = folder / "ca.crt"
    authority.write_bytes(base64.b64decode(cluster["cluster"]["certificate-authority-data"]))
    kubectl(k3s, "create", "namespace", ACCOUNTS)
    for account in (ADMIN, Service.WORKLOAD_RECONCILER.value):
        kubectl(k3s, "create", "serviceaccount", account, "-n", ACCOUNTS)
    everything = ("--clusterrole=cluster-admin", f"--serviceaccount={ACCOUNTS}:{ADMIN}")
    kubectl(k3s, "create", "clusterrolebinding", ADMIN, *everything)
    tokens = {
        account: kubectl(k3s, "create", "token", account, "-n", ACCOUNTS)
        for account in (ADMIN, Service.WORKLOAD_RECONCILER.value)
    }
    return KubeServer("real", cluster["cluster"]["server"], tokens, folder, ca_file=authority)


async def install(calls: KubeCalls) -> None:
    """Kinds and rights, as `kubectl apply -f deploy/crds -f deploy/rbac` leaves them."""
    await install_definitions(calls)
    for manifest in manifests("rbac"):
        answer = await calls.apply(place_of(manifest), manifest, manager="kubectl", force="true")
        assert answer.ok, answer


async def test_a_serving_runs_and_goes_on_a_whole_cluster(k3s: Any, tmp_path: Path) -> None:
    server = server_of(k3s, tmp_path)
    async with server.calls() as calls:
        await install(calls)
        fleet = KubeFleet(calls, "default")
        async with kube_substrate(server, "default") as substrate:
            passes = Passes(substrate)
            await fleet.create(serving(replicas=2, workers=1, image=PAUSE))

            async def runs() -> bool:
                try:
                    plan = await passes.once(await fleet.serving())
                except ProblemsError:
                    return False  # the object isn't seen yet
                status = (await fleet.serving())["status"]
                return not plan.actions and status["availableReplicas"] == 2

            await eventually(runs, RUNNING_SECONDS)
            pods = await fleet.all("pods")
            assert len(pods) == 4
            assert all(pod["spec"]["nodeName"] for pod in pods)
            assert (await calls.delete(fleet.servings("x"))).ok

            async def is_collected() -> bool:
                left = await fleet.names("pods") + await fleet.names("services")
                return left + await fleet.names("controllerrevisions", "apps") == []

            await eventually(is_collected, RUNNING_SECONDS)
        events = await calls.get(path_of("events", "default"))
        assert "RoleRunning" in {one["reason"] for one in events.items}
