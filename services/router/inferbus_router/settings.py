"""The router's settings, `INFERBUS_ROUTER_…`."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from inferbus_contracts.services import Service
from inferbus_router.reference_environment import ReferenceEnvironment
from inferbus_shared.settings import ServiceSettings

_MIB = 1024 * 1024


class RouterSettings(ServiceSettings):
    """Where the router listens, and how much and how long it waits for whom."""

    model_config = SettingsConfigDict(env_prefix=Service.ROUTER.setting_prefix)

    service: ClassVar[Service] = Service.ROUTER

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *sources: Any, **named: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The reference's variables come last."""
        given = super().settings_customise_sources(settings_cls, *sources, **named)
        return (*given, ReferenceEnvironment(settings_cls))

    host: str = "127.0.0.1"
    """Address that clients reach; every address needs `0.0.0.0` or `::`."""
    port: int = Field(default=8080, ge=0, le=65535)
    """0 lets the system choose."""
    listen_fd: int | None = Field(default=None, ge=3)
    """A listening socket that was inherited; host and port are then its own."""
    debug_port: int | None = Field(default=None, ge=0, le=65535)
    """The debug endpoint has a port of its own on 127.0.0.1 there, 0: any; None: it is beside the
    metrics, where their address is of this machine alone.
    """
    backlog: int = Field(default=4096, ge=1)
    """Connections that the system completes before they are accepted."""
    table_file: Path | None = None
    """Take the routing table from this JSON or YAML file instead of from the bus."""

    configuration_file: Path | None = None
    """The reference's `routerConfiguration.yaml`: scheduler plugins and authentication."""
    configuration_interval_seconds: float = Field(default=1, gt=0)
    """The file is looked at that often, and followed when it changes."""
    engine_metrics_interval_seconds: float = Field(default=1, gt=0)
    """Engines are asked for their metrics that often, where a scheduler plugin goes by them."""

    kv_redis_host: str | None = None
    """Redis of the reference's sidecars, from which the plugin kvcache-aware learns."""
    kv_redis_port: int = Field(default=6379, ge=1, le=65535)
    kv_redis_password: SecretStr = SecretStr("")

    max_head_bytes: int = Field(default=64 * 1024, ge=1024)
    """Request line and headers."""
    max_body_bytes: int = Field(default=32 * _MIB, ge=1024)

    head_timeout_seconds: float = Field(default=10, gt=0)
    """For the whole head of a request, from its first byte."""
    body_timeout_seconds: float = Field(default=30, gt=0)
    """Between two pieces of a request's body."""
    keepalive_timeout_seconds: float = Field(default=75, gt=0)
    """A client's connection without a request is closed after that long, or up to twice as long."""
    closing_timeout_seconds: float = Field(default=30, gt=0)
    """For the client to take the rest of a last response."""
    connect_timeout_seconds: float = Field(default=5, gt=0)
    """To an endpoint."""
    first_byte_timeout_seconds: float = Field(default=600, gt=0)
    """From the first attempt to the first byte of the response, where the ModelServer sets no
    timeout; virtual time.
    """
    stream_idle_timeout_seconds: float = Field(default=300, gt=0)
    """Between two pieces of a response, whoever is slow; virtual time."""
    pool_idle_timeout_seconds: float = Field(default=4, gt=0)
    """A connection to an endpoint is kept that long; engines close theirs after 5 seconds."""
    grace_seconds: float = Field(default=300, ge=0)
    """After SIGTERM running responses may take that long to finish."""
    drain_linger_seconds: float = Field(default=2, ge=0)
    """After SIGTERM connections without a request are kept that long, in case one is on its way."""

    hold_queue_requests: int = Field(default=1024, ge=0)
    """Requests that wait at most while their model starts; 0: none."""
    hold_queue_bytes: int = Field(default=256 * _MIB, ge=0)
    """What their bodies may take together."""
    hold_deadline_seconds: float = Field(default=300, gt=0)
    """A request waits that long for its model to start; virtual time."""
    retry_after_seconds: int = Field(default=5, ge=1)
    """Told to clients with 503."""

    cors_origins: str = ""
    """Origins whose pages may call the router from a browser, with commas between them, or `*` for
    any; empty: none.
    """
    limit_deadline_ms: int = Field(default=20, ge=1)
    """A request waits that long at most for the Redis server of its limit; real time."""
    api_keys_path: Path | None = None
    """File of `name: key` lines, or folder of one file per key, that clients must have one of;
    None: no API keys. Read again when it changes.
    """
    forward_credentials: bool = False
    """Engines get the client's Authorization and X-API-Key too."""
    jwks_refresh_seconds: float = Field(default=3600, gt=0)
    """The keys of the identity provider are fetched that often; real time."""
    jwks_least_gap_seconds: float = Field(default=10, ge=0)
    """Between two fetches that tokens with unknown keys ask for; real time."""

    access_log: Literal["text", "json", "off"] = "text"
    access_log_path: Path | None = None
    """Appended to; None: standard output, `stderr`: standard error."""
    access_log_flush_ms: int = Field(default=250, ge=10)
    """Lines are written together that often."""
    tracing: str | None = None
    """Send spans of requests to the OpenTelemetry collector at this URL (OTLP over HTTP)."""
    tracing_sample_ratio: float = Field(default=1, ge=0, le=1)
    """Of the traces that begin here; whether one that a client began is kept, is the client's say.
    """
    tracing_interval_seconds: float = Field(default=1, gt=0)
    """Spans are sent together that often."""
    upstream_ca_file: Path | None = None
    """Certificates that endpoints with protocol https are checked against; None: the system's."""
    upstream_server_name: str | None = Field(default=None, min_length=1)
    """The name that certificates of endpoints must be made out for; None: their address."""
    upstream_tls_verify: bool = True
    """False believes any certificate of an endpoint: for trying things out."""
    provider_ca_file: Path | None = None
    """Certificates that external providers are checked against; None: the system's."""
    secrets: Path | None = None
    """The platform's folder with values of Secrets, where the credentials of providers are."""
    credentials_dir: Path | None = None
    """Or a folder in which Secrets are mounted, as `<namespace>/<name>/<key>`."""
    tls_certificate_file: Path | None = None
    """PEM certificate with its chain: clients are served over HTTPS. None: over HTTP."""
    tls_key_file: Path | None = None
    """The key of the certificate, in PEM without a password."""
    tls_reload_seconds: float = Field(default=5, gt=0)
    """The certificate and its key are looked at that often, and read again when they changed."""
