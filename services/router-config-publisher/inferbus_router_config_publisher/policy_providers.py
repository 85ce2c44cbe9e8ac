"""All ExternalModelProviders: what routers get of each, and what is said about them.

A provider is published as a server with one endpoint, its address, and how it wants to be spoken to
(routing spec 6.5). Invariant: a credential is published by reference alone; whether it can be
resolved is known to routers only, and said here as they report it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import (
    ConditionFact,
    ConditionStatus,
    EndpointEntry,
    ProviderEntry,
    ServerEntry,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.external_provider import (
    AuthScheme,
    ExternalModelProvider,
    ExternalModelProviderSpec,
    ProviderType,
)
from inferbus_router_config_publisher.policy_objects import Stored

READY = "Ready"
CREDENTIALS_RESOLVED = "CredentialsResolved"
PROVIDER_TYPES = (READY, CREDENTIALS_RESOLVED)

_HTTPS_PORT = 443
_OWN_SCHEMES = {ProviderType.OPENAI: AuthScheme.BEARER, ProviderType.ANTHROPIC: AuthScheme.API_KEY}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """A provider with what follows from its object."""

    resource: ExternalModelProvider
    entry: ServerEntry
    doubts: tuple[str, ...]
    """Why it can't be used; empty where it can."""


class Providers:
    """Providers, and what routers say of their credentials."""

    def __init__(self) -> None:
        self.stored: dict[ObjectKey, Stored[ExternalModelProvider]] = {}
        self._views: dict[ObjectKey, ProviderView] = {}
        self._missing: dict[ObjectKey, frozenset[ObjectKey]] = {}

    def view(self, key: ObjectKey) -> ProviderView | None:
        """A provider; None when it doesn't exist or can't be read."""
        return self._views.get(key)

    def set_provider(
        self,
        key: ObjectKey,
        stored: Stored[ExternalModelProvider] | None,
        doubts: Iterable[str],
    ) -> None:
        """A provider is now like this; None: it is gone."""
        self._views.pop(key, None)
        if stored is None:
            self.stored.pop(key, None)
            return
        self.stored[key] = stored
        if stored.resource is not None:
            self._views[key] = ProviderView(
                resource=stored.resource,
                entry=provider_entry(key, stored.resource.spec),
                doubts=tuple(doubts),
            )

    def conditions(self, key: ObjectKey, view: ProviderView) -> list[ConditionFact]:
        """Ready and CredentialsResolved (routing spec 1.3)."""
        credentials = self._credentials(key, view)
        if view.doubts:
            ready = condition(READY, False, "ConfigurationInvalid", "; ".join(view.doubts))
        elif credentials.status is ConditionStatus.FALSE:
            ready = condition(READY, False, credentials.reason, credentials.message)
        else:
            ready = condition(READY, True, "Ready")
        return [ready, credentials]

    def report(self, missing: Mapping[ObjectKey, frozenset[ObjectKey]]) -> frozenset[ObjectKey]:
        """What each known router is missing credentials for; returns the providers concerned."""
        before, self._missing = self._missing, dict(missing)
        return frozenset() if before == self._missing else frozenset(self._views)

    def _credentials(self, key: ObjectKey, view: ProviderView) -> ConditionFact:
        provider = view.entry.provider
        assert provider is not None
        if not provider.secret_name:
            return condition(CREDENTIALS_RESOLVED, True, "CredentialNotRequired")
        name = f"Secret {key.namespace}/{provider.secret_name}"
        if not self._missing:
            message = f"no router has said whether it can read {name}"
            return ConditionFact(
                type=CREDENTIALS_RESOLVED,
                status=ConditionStatus.UNKNOWN,
                reason="NotReported",
                message=message,
            )
        lacking = sum(key in missing for missing in self._missing.values())
        if not lacking:
            return condition(CREDENTIALS_RESOLVED, True, "CredentialResolved")
        message = (
            f"{lacking} of {len(self._missing)} routers find no usable value under "
            f"{provider.secret_key} of {name}; create it, or make it readable for routers"
        )
        return condition(CREDENTIALS_RESOLVED, False, "CredentialNotFound", message)


def provider_entry(key: ObjectKey, spec: ExternalModelProviderSpec) -> ServerEntry:
    """What routers get of a provider."""
    address = urlsplit(spec.base_url)
    auth, secret = spec.auth, spec.auth.secret_ref if spec.auth else None
    scheme = (auth.scheme if auth else None) or _OWN_SCHEMES[spec.provider_type]
    return ServerEntry(
        model=spec.model or None,
        engine=spec.provider_type.value,
        protocol="https",
        endpoints=[
            EndpointEntry(
                pod=f"{key.namespace}/{key.name}",
                address=address.hostname or "",
                port=address.port or _HTTPS_PORT,
            )
        ],
        provider=ProviderEntry(
            kind=spec.provider_type.value,
            host=address.netloc.rpartition("@")[2],
            base_path=address.path.rstrip("/"),
            insecure_skip_verify=spec.insecure_skip_verify,
            auth=scheme.value,
            secret_name=(secret.name or "") if secret else "",
            secret_key=secret.key if secret else "",
            headers=spec.headers,
        ),
    )
