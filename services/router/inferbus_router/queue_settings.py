"""The settings of the queues before engines: the reference's environment variables, by its names.

Invariant: what can't be used is told by the variable's name and the router doesn't start, where the
reference takes its default and says nothing (routing spec 0).
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from inferbus_contracts.resources.scalars import parse_duration_ms
from inferbus_router.policy_fairness import ServiceWeights

Milliseconds = Annotated[int, BeforeValidator(parse_duration_ms)]
"""Written as a Go duration, e.g. `1m30s`."""
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_MIB = 1024 * 1024


class QueueSettings(BaseSettings):
    """Which queue there is, if any, and how requests pass through it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    enable_fairness_scheduling: bool = False
    """Serve principals equally."""
    enable_session_boost: bool = False
    """Serve sessions first whose last answer is fresh; not together with fairness."""

    queue_requests: int = Field(
        default=4096, ge=1, validation_alias="INFERBUS_ROUTER_QUEUE_REQUESTS"
    )
    """Requests that wait at most, for all models together."""
    queue_bytes: int = Field(
        default=256 * _MIB, ge=0, validation_alias="INFERBUS_ROUTER_QUEUE_BYTES"
    )
    """What their bodies may take together."""

    queue_least_in_flight: int = Field(
        default=16, ge=1, validation_alias="INFERBUS_ROUTER_QUEUE_LEAST_IN_FLIGHT"
    )
    """Requests that an endpoint gets whatever it has to do, with fairness."""
    queue_most_in_flight: int = Field(
        default=256, ge=1, validation_alias="INFERBUS_ROUTER_QUEUE_MOST_IN_FLIGHT"
    )
    """Requests that an endpoint gets at most, with fairness."""
    queue_backlog_ms: int = Field(
        default=500, ge=0, validation_alias="INFERBUS_ROUTER_QUEUE_BACKLOG_MS"
    )
    """Between these it gets more while it is predicted to begin with another prompt that soon."""

    fairness_window_size: Annotated[Milliseconds, Field(ge=60_000, le=3_600_000)] = "5m"  # type: ignore[assignment]
    """How long the service of a principal without requests is remembered."""
    fairness_input_token_weight: Weight = 1.0
    fairness_output_token_weight: Weight = 2.0
    fairness_priority_token_weight: Weight = 1.0
    fairness_priority_request_num_weight: Weight = 0.0
    fairness_max_concurrent: int = Field(default=0, ge=0)
    """Requests of one model that are served at a time; 0: as many as its endpoints take."""
    fairness_queue_timeout: Annotated[Milliseconds, Field(gt=0)] = "60s"  # type: ignore[assignment]

    fairness_max_qps: float = Field(default=100, gt=0)
    """Accepted, without effect: what endpoints take is the limit (routing spec, defect 25)."""
    fairness_priority_refresh_retries: int = Field(default=0, ge=0)
    """Accepted, without effect: the order is always up to date."""
    fairness_rebuild_threshold: int = Field(default=64, gt=0)
    """Accepted, without effect, likewise."""

    session_boost_header: str = Field(default="X-Session-ID", min_length=1)
    session_boost_max_sessions: int = Field(default=4096, gt=0)
    session_boost_inflight_per_pod: int = Field(default=16, gt=0)
    session_boost_grace_period: Annotated[Milliseconds, Field(ge=0)] = "0"  # type: ignore[assignment]
    """How long a place is kept free for the session that has just completed a request."""
    session_boost_timeout: Milliseconds = "30s"  # type: ignore[assignment]
    """0 or less: requests wait for as long as their clients do."""

    @model_validator(mode="after")
    def _one_queue(self) -> "QueueSettings":
        if self.enable_fairness_scheduling and self.enable_session_boost:
            raise ValueError(
                "ENABLE_FAIRNESS_SCHEDULING and ENABLE_SESSION_BOOST exclude each other"
            )
        return self

    @property
    def weights(self) -> ServiceWeights:
        """What service is worth; without any weight tokens count (routing spec 0)."""
        tokens, requests = (
            self.fairness_priority_token_weight,
            self.fairness_priority_request_num_weight,
        )
        return ServiceWeights(
            input_token=self.fairness_input_token_weight,
            output_token=self.fairness_output_token_weight,
            tokens=tokens if tokens or requests else 1.0,
            request=requests,
        )
