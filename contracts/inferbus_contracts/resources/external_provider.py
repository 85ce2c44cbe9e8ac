"""ExternalModelProvider: a service outside the fleet that a route may send requests to.

Invariant: a credential is only ever a reference to a Secret (routing spec 1.3).
"""

from enum import StrEnum

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.scalars import Flag


class ProviderType(StrEnum):
    """Whose API an external provider speaks."""

    OPENAI = "OpenAI"
    ANTHROPIC = "Anthropic"


class AuthScheme(StrEnum):
    """How a provider's credential is sent."""

    BEARER = "Bearer"
    API_KEY = "APIKey"


class SecretKeyReference(ResourcePart):
    """One key of a Secret of the same namespace."""

    name: str | None = None
    """Name of the Secret."""
    key: str
    """Key in the Secret."""
    optional: Flag | None = None
    """A credential can't be optional; false is all that is accepted."""


class ProviderAuth(ResourcePart):
    """The credential of a provider, by reference."""

    scheme: AuthScheme | None = None
    """Absent means the provider's own."""
    secret_ref: SecretKeyReference | None = None


class ExternalModelProviderSpec(ResourcePart):
    """A service outside the fleet that answers for a model (routing spec 1.3)."""

    provider_type: ProviderType = ProviderType.OPENAI
    model: str | None = Field(default=None, max_length=256)
    """The name the provider knows the model by; absent passes on what the client wrote."""
    base_url: str = Field(alias="baseURL", pattern="^https://.+")
    """Address of the API: https, a host, perhaps a port and a path."""
    insecure_skip_verify: Flag = False
    """Don't check the provider's certificate."""
    auth: ProviderAuth | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers of each request."""


class ExternalModelProvider(Resource):
    """A provider (after v1.0.0)."""

    spec: ExternalModelProviderSpec
