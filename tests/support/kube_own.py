"""An API server that belongs to one test, or to one module: it may be away for a while, and what
all namespaces share may be defined on it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from inferbus_contracts.services import Service
from tests.fakes.kubernetes import FakeKubernetes
from tests.support.kube import KubeServer
from tests.support.kube_apiserver import KubeApiServer


class OwnServer:
    """One server; `of_fake` and `of_real` make them."""

    def __init__(self, server: KubeServer, program: FakeKubernetes | KubeApiServer) -> None:
        self.server = server
        self._program = program

    @classmethod
    @contextlib.asynccontextmanager
    async def of_fake(cls, folder: Path) -> AsyncIterator["OwnServer"]:
        """A new fake."""
        async with FakeKubernetes(Service) as fake:
            yield cls(KubeServer("fake", fake.url, fake.tokens, folder, fake=fake), fake)

    @classmethod
    def of_real(cls, real: KubeApiServer, folder: Path) -> "OwnServer":
        """One that runs already; tokens go into the folder."""
        authority = real.certificate_authority
        return cls(KubeServer("real", real.url, real.tokens, folder, ca_file=authority), real)

    async def away(self) -> None:
        """From now on nobody answers; address, users and objects stay."""
        if isinstance(self._program, FakeKubernetes):
            await self._program.stop()
        else:
            self._program.kill()

    async def back(self) -> None:
        """It answers again."""
        if isinstance(self._program, FakeKubernetes):
            await self._program.start()
        else:
            await asyncio.to_thread(self._program.start)
