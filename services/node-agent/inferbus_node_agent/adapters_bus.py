"""The node agent's outside on the bus: pods from the objects bucket, statuses to the object API."""

import asyncio
import base64
from collections.abc import Callable, Iterable

from inferbus_contracts.api.objects import Preconditions
from inferbus_contracts.artifacts import artifact_digest, artifact_key, parse_model_uri
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.model import ModelFailed, ModelReady
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import CONFIG_MAP
from inferbus_node_agent.policy_environment import SourceKind, SourceName
from inferbus_node_agent.ports import Document
from inferbus_shared.bus.messages import Received
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture, shown
from inferbus_shared.objects.secrets import SecretFiles


class BusPods:
    """A `PodPicture` of the objects bucket."""

    def __init__(self, picture: ObjectPicture) -> None:
        """`picture` holds pods."""
        self._picture = picture

    async def ready(self) -> None:
        """Wait until the picture is complete."""
        await self._picture.ready()

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with the key of every pod that changed or went."""
        self._picture.on_change(listener)

    def pods(self) -> Iterable[tuple[ObjectKey, Document]]:
        """All of them."""
        return ((key, shown(stored)) for key, stored in self._picture.items())

    def pod(self, key: ObjectKey) -> Document | None:
        """One; None when there is none."""
        stored = self._picture.get(key)
        return None if stored is None else shown(stored)


class BusStatuses:
    """A `StatusSink`: the object API."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client

    async def report(self, key: str, uid: str, status: Document) -> None:
        """Replace the status of a pod object."""
        await self._client.set_status(ObjectKey.parse(key), dict(status), Preconditions(uid=uid))

    async def finalise(self, key: str, uid: str) -> None:
        """Remove the object of a pod that has stopped."""
        await self._client.delete(ObjectKey.parse(key), Preconditions(uid=uid), final=True)


class BusConfigs:
    """A `ConfigSource`: ConfigMaps from the object API, Secrets from this machine's files."""

    def __init__(self, client: ObjectClient, secrets: SecretFiles) -> None:
        self._client = client
        self._secrets = secrets

    async def get(self, namespace: str, name: SourceName) -> Document | None:
        """The object; None when there is none."""
        if name.kind is SourceKind.SECRET:
            values = self._secrets.read(namespace, name.name)
            if values is None:
                return None
            return {"data": {key: base64.b64encode(one).decode() for key, one in values.items()}}
        try:
            return await self._client.get(ObjectKey(CONFIG_MAP, namespace, name.name))
        except ProblemsError as error:
            if error.problems[0].code is ErrorCode.NOT_FOUND:
                return None
            raise


class BusModels:
    """A `ModelGate`: what the downloader of this node says."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._known: dict[ObjectKey, ModelReady | ModelFailed] = {}
        self._changed = asyncio.Condition()

    async def take(self, event: Received[EventData]) -> None:
        """Fold one fact in."""
        if isinstance(event.data, ModelReady | ModelFailed):
            async with self._changed:
                self._known[event.key] = event.data
                self._changed.notify_all()

    async def wait(self, pod_key: str, source: str, destination: str) -> None:
        """Return once the artifact is complete; raise when its download failed for good."""
        del pod_key, destination
        uri = parse_model_uri(source)
        key = artifact_key(artifact_digest(uri, None, (), ()), self._node)
        async with self._changed:
            await self._changed.wait_for(lambda: _is_decided(self._known.get(key)))
        known = self._known[key]
        if isinstance(known, ModelFailed):
            raise ProblemsError(known.problem)


def _is_decided(known: ModelReady | ModelFailed | None) -> bool:
    """A failure that is tried again by itself decides nothing."""
    if isinstance(known, ModelFailed):
        return known.retry_at_ms is None
    return known is not None
