"""Clients of the API servers that tests run against."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest_asyncio

from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.resources import CUSTOM_RESOURCE_DEFINITION, ApiResource
from inferbus_shared.kube.settings import KubeSettings
from shared.tests.kube.documents import definition
from tests.support.eventually import eventually
from tests.support.kube import KubeServer


def settings_of(server: KubeServer, **more: Any) -> KubeSettings:
    return KubeSettings.model_validate({**server.settings(), **more})


@pytest_asyncio.fixture
async def kube(kube_server: KubeServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(settings_of(kube_server)) as client:
        yield client


@pytest_asyncio.fixture
async def widgets(kube: KubeClient) -> AsyncIterator[ApiResource]:
    """A resource of this test alone, with status and scale."""
    async with AsyncExitStack() as stack:
        group = f"test-{uuid.uuid4().hex[:10]}.example.com"
        resource = ApiResource(group, "v1", "widgets", "Widget")
        await kube.create(CUSTOM_RESOURCE_DEFINITION, definition(group))
        stack.push_async_callback(kube.delete, CUSTOM_RESOURCE_DEFINITION, "", f"widgets.{group}")
        await eventually(lambda: _listed(kube, resource), what="the CRD is served")
        yield resource


async def _listed(kube: KubeClient, resource: ApiResource) -> bool:
    await kube.list(resource)
    return True
