"""One interface over both API servers that tests run against: the project's fake and a real one.

A test that takes `kube_server` runs on the fake always, and on a real kube-apiserver where
`KUBEBUILDER_ASSETS` names one; that half is skipped elsewhere, saying so. What they share is HTTP:
whatever passes on both is a semantics that the fake has right.
"""

import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
import pytest_asyncio
import yaml

from inferbus_contracts.services import Service
from tests.support.kube_apiserver import ADMIN

if TYPE_CHECKING:
    from tests.fakes.kubernetes import FakeKubernetes
    from tests.support.kube_calls import KubeCalls

REAL = pytest.param("real", marks=[pytest.mark.slow, pytest.mark.kube])


@dataclass(frozen=True)
class KubeServer:
    """An API server that answers. `tokens` are bearer tokens: of `ADMIN` and of each service.

    `fake` is there when `kind` is `fake`: for faults, the record of calls, stops and starts.
    """

    kind: Literal["fake", "real"]
    url: str
    tokens: Mapping[str, str]
    folder: Path
    ca_file: Path | None = None
    fake: "FakeKubernetes | None" = field(default=None, repr=False)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """A kubeconfig file with which clients reach this server as `user`."""
        cluster: dict[str, str] = {"server": self.url}
        if self.ca_file is not None:
            cluster["certificate-authority"] = str(self.ca_file)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def token_file(self, user: str = ADMIN) -> Path:
        """A file with the user's token alone, as the kubelet mounts it."""
        path = self.folder / f"{user}.token"
        path.write_text(self.tokens[user])
        return path

    def settings(self, user: str = ADMIN) -> dict[str, object]:
        """Fields of the client's settings (`KubeSettings`) that lead to this server as `user`."""
        return {
            "server": self.url,
            "token_file": self.token_file(user),
            "ca_file": self.ca_file,
        }

    def environment(self, user: str = ADMIN) -> dict[str, str]:
        """The same for a process, as environment variables."""
        return {
            f"INFERBUS_KUBE_{name.upper()}": str(value)
            for name, value in self.settings(user).items()
            if value is not None
        }

    def calls(self, user: str = ADMIN) -> "KubeCalls":
        """Plain HTTP as `user`: an async context manager."""
        from tests.support.kube_calls import KubeCalls

        return KubeCalls(self.url, self.tokens[user], self.ca_file)


@pytest_asyncio.fixture(params=["fake", REAL])
async def kube_server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KubeServer]:
    """An API server: the fake, of this test alone; the real one, of this test process."""
    if request.param == "real":
        real = request.getfixturevalue("kube_apiserver")
        yield KubeServer(
            "real", real.url, real.tokens, tmp_path, ca_file=real.certificate_authority
        )
        return
    async for server in _fake(tmp_path):
        yield server


@pytest_asyncio.fixture
async def fake_kube_server(tmp_path: Path) -> AsyncIterator[KubeServer]:
    """The fake alone: for what only it can do, faults above all."""
    async for server in _fake(tmp_path):
        yield server


async def _fake(folder: Path) -> AsyncIterator[KubeServer]:
    from tests.fakes.kubernetes import FakeKubernetes

    async with FakeKubernetes(Service) as fake:
        yield KubeServer("fake", fake.url, fake.tokens, folder, fake=fake)


@pytest_asyncio.fixture
async def kube_calls(kube_server: KubeServer) -> "AsyncIterator[KubeCalls]":
    """Plain HTTP to the server, as the user who may do everything."""
    async with kube_server.calls() as calls:
        yield calls


@pytest_asyncio.fixture
async def namespace(kube_calls: "KubeCalls") -> str:
    """A new namespace of this test alone."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    answer = await kube_calls.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.code == 201, answer
    return name
