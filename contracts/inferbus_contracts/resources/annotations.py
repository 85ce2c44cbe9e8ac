"""The platform's own annotations (`inferbus.dev/…`): their names, and what their values say.

Invariant: each value has one parser, used by admission and by whoever acts on it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from inferbus_contracts.resources.annotation_forms import count, non_empty, port, word
from inferbus_contracts.resources.annotations_routes import ROUTE_PARSERS
from inferbus_contracts.resources.scalars import parse_duration_ms, quantity_float

PREFIX = "inferbus.dev/"
OBJECTIVE = f"{PREFIX}objective"
CAPACITY = f"{PREFIX}capacity"
FORECAST = f"{PREFIX}forecast"
"""On a policy with an objective: what its forecasts rest on beside the trend."""
MODE = f"{PREFIX}mode"
COMPAT = f"{PREFIX}compat"
SCALER = f"{PREFIX}scaler"
MODEL_NAME = f"{PREFIX}model-name"
TOLERATIONS = f"{PREFIX}tolerations"
AGGREGATION = f"{PREFIX}aggregation"
"""On a policy or binding: what the values of its Prometheus metrics are of."""
ENGINE = f"{PREFIX}engine"
"""On an inference Service: which engine its pods run, a word of ModelServer.inferenceEngine."""
ENGINE_PORT = f"{PREFIX}engine-port"
"""On a pod: the port that its engine answers on."""
PREFILL_MIN_TOKENS = f"{PREFIX}prefill-min-tokens"
"""On a ModelServer with a pdGroup: shorter prompts go to a decode pod alone."""
BOOTSTRAP_PORT = f"{PREFIX}bootstrap-port"
"""On a ModelServer of SGLang pods with a pdGroup: where prefill and decode meet."""
OWNED_BY = f"{PREFIX}owned-by"
"""On a ModelRoute: `owned_by` of its model in `/v1/models` (ruling "owner")."""
CREATED_AT = f"{PREFIX}created-at"
"""On a ModelRoute: when its model was created, RFC 3339 (llmaz spec 1.1)."""
TRY_TIMEOUT = f"{PREFIX}try-timeout"
"""On a ModelServer: how long one attempt may take to begin its answer, e.g. `5s`; the timeout of
its traffic policy counts for all attempts together (routing spec, defect 3)."""

PAUSED = f"{PREFIX}paused"
"""On a workload, `true`: no group or role moves on to another revision; the rest goes on."""
PROGRESS_DEADLINE = f"{PREFIX}progress-deadline"
"""On a workload: how long nothing may come closer to what is wanted before that is told."""
STARTUP_ORDER = f"{PREFIX}startup-order"
"""On a ModelServing: what of a group starts before what."""

NAMING = f"{PREFIX}naming"
"""On a ModelServing of one role with one replica: whose names, labels and variables its pods get;
absent, ModelServing's own."""

DECISION_ID = f"{PREFIX}decision-id"
"""The decision that set the replicas last: a repeated request answers what the first did."""
MANIFEST = f"{PREFIX}manifest"
"""The file of the watched folder that an object comes from, relative to it."""
SECRET_KEYS = f"{PREFIX}secret-keys"
"""On a stored Secret: its keys, comma-separated; what remains of its values."""
SURGE = f"{PREFIX}surge"
"""On a pod: its group stands in for one that is being replaced."""
POD_SETTINGS = f"{PREFIX}pod-settings"
"""On a pod: a digest of what shaped it beside its revision, so that later changes are told."""
REVISION_ALGORITHM = f"{PREFIX}revision-algorithm"
"""On a ControllerRevision: how its name was computed."""

_OBJECTIVE = re.compile(r"(?P<metric>[a-z]+)=(?P<limit>[^@]+)@(?P<percent>[0-9]+(?:\.[0-9]+)?)%")
_CAPACITY = re.compile(r"(?P<unit>[a-z]+)=(?P<rate>[^/]+)/s")


class Naming(StrEnum):
    """Conventions other than ModelServing's own."""

    LEADER_WORKER_SET = "leader-worker-set"
    """For programs that are written for LeaderWorkerSets (ruling "without LWS")."""


class ApplyMode(StrEnum):
    """What happens with decisions about an object."""

    AUTO = "auto"
    ADVISE = "advise"
    APPROVE = "approve"


class Compat(StrEnum):
    """Whose behaviour is reproduced, defects included."""

    KTHENA_V01 = "kthena-v0.1"
    KTHENA_HEAD = "kthena-head"


class Aggregation(StrEnum):
    """What the value of a Prometheus query is of (autoscaling spec 5.5, D3)."""

    TOTAL = "total"
    AVERAGE = "average"
    UTILISATION = "utilisation"


class Scaler(StrEnum):
    """Who scales an object: never both."""

    INFERBUS = "inferbus"
    HPA = "hpa"


class StartupStep(StrEnum):
    """What waits for what when a group is built."""

    ENTRY_FIRST = "entry-first"
    """Workers for their entry pod to be ready."""
    ROLES_IN_ORDER = "roles-in-order"
    """Each role for those before it in the spec to run."""


class ObjectiveMetric(StrEnum):
    """What an objective limits: the time to the first token, or the wait for a replica."""

    TTFT = "ttft"
    WAIT = "wait"


class Forecasting(StrEnum):
    """What forecasts of the load rest on, beside its trend."""

    DAILY = "daily"


class CapacityUnit(StrEnum):
    """What one replica's capacity is counted in."""

    REQUESTS = "requests"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Aggregations:
    """How the metrics of one policy are aggregated."""

    default: Aggregation = Aggregation.TOTAL
    by_metric: Mapping[str, Aggregation] = field(default_factory=dict)

    def of(self, metric: str) -> Aggregation:
        """How one metric is."""
        return self.by_metric.get(metric, self.default)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """`percent` of requests stay within `limit_ms`."""

    metric: ObjectiveMetric
    limit_ms: int
    percent: float
    """Above 0, at most 100."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What one replica serves."""

    unit: CapacityUnit
    per_second: float
    """Above 0."""


def parse_objective(text: str) -> Objective:
    """Read e.g. `ttft=2s@99.5%`; raises `ValueError` saying what is wrong."""
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise ValueError("should look like ttft=2s@99.5%")
    limit_ms = parse_duration_ms(match["limit"])
    percent = float(match["percent"])
    if limit_ms <= 0 or not 0 < percent <= 100:
        raise ValueError("needs a time above 0 and a percentage above 0 and up to 100")
    return Objective(
        metric=word(ObjectiveMetric, match["metric"]), limit_ms=limit_ms, percent=percent
    )


def parse_capacity(text: str) -> Capacity:
    """Read e.g. `requests=2.5/s` or `tokens=9000/s`; raises `ValueError` saying what is wrong."""
    match = _CAPACITY.fullmatch(text)
    if match is None:
        raise ValueError("should look like requests=2.5/s or tokens=9000/s")
    per_second = quantity_float(match["rate"])
    if per_second <= 0:
        raise ValueError("needs a rate above 0")
    return Capacity(unit=word(CapacityUnit, match["unit"]), per_second=per_second)


def parse_forecasting(text: str) -> Forecasting:
    """Read `daily`; raises `ValueError` saying what is wrong."""
    forecasting: Forecasting = word(Forecasting, text)
    return forecasting


def parse_aggregations(text: str) -> Aggregations:
    """Read e.g. `average`, or `gpu=utilisation,queue=average`; raises `ValueError`."""
    default, by_metric = Aggregation.TOTAL, {}
    for part in text.split(","):
        name, equals, said = part.strip().rpartition("=")
        way: Aggregation = word(Aggregation, _SPELLINGS.get(said.strip(), said.strip()))
        if equals:
            by_metric[name.strip()] = way
        else:
            default = way
    return Aggregations(default, by_metric)


def parse_startup_order(text: str) -> frozenset[StartupStep]:
    """Read e.g. `entry-first,roles-in-order`; raises `ValueError`."""
    return frozenset(word(StartupStep, step.strip()) for step in text.split(","))


def parse_naming(text: str) -> Naming:
    """Read `leader-worker-set`; raises `ValueError` for anything else."""
    naming: Naming = word(Naming, text)
    return naming


def parse_paused(text: str) -> bool:
    """Read `true` or `false`; raises `ValueError` for anything else."""
    if text not in ("true", "false"):
        raise ValueError("should be true or false")
    return text == "true"


def parse_deadline_ms(text: str) -> int:
    """Read a time above 0 such as `30m` as milliseconds; raises `ValueError`."""
    deadline_ms = parse_duration_ms(text)
    if deadline_ms <= 0:
        raise ValueError("needs a time above 0")
    return deadline_ms


def parse_tolerations(text: str) -> list[dict[str, Any]]:
    """Read a JSON list of core/v1 tolerations; raises `ValueError` saying what is wrong."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"should be a JSON list of tolerations: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("should be a JSON list of mappings")
    return value


def compat_of(annotations: Mapping[str, str]) -> Compat | None:
    """Whose behaviour is asked for; None means the platform's own, or a word nobody knows."""
    value = annotations.get(COMPAT)
    return Compat(value) if value in set(Compat) else None


def apply_mode_of(annotations: Mapping[str, str]) -> ApplyMode:
    """What happens with decisions; a word nobody knows is taken for the harmless one, advise."""
    value = annotations.get(MODE, ApplyMode.AUTO)
    return ApplyMode(value) if value in set(ApplyMode) else ApplyMode.ADVISE


def problem_of(name: str, value: str) -> str | None:
    """What is wrong with the value of one of the platform's annotations; None when nothing is."""
    try:
        _PARSERS.get(name, str)(value)
    except ValueError as error:
        return str(error)
    return None


_SPELLINGS = {"utilization": "utilisation"}


_PARSERS: dict[str, Any] = {
    OBJECTIVE: parse_objective,
    CAPACITY: parse_capacity,
    FORECAST: parse_forecasting,
    MODE: lambda value: word(ApplyMode, value),
    COMPAT: lambda value: word(Compat, value),
    SCALER: lambda value: word(Scaler, value),
    MODEL_NAME: non_empty,
    TOLERATIONS: parse_tolerations,
    AGGREGATION: parse_aggregations,
    ENGINE: non_empty,
    ENGINE_PORT: port,
    PREFILL_MIN_TOKENS: count,
    BOOTSTRAP_PORT: port,
    OWNED_BY: str,
    CREATED_AT: str,
    TRY_TIMEOUT: parse_deadline_ms,
    PAUSED: parse_paused,
    PROGRESS_DEADLINE: parse_deadline_ms,
    STARTUP_ORDER: parse_startup_order,
    NAMING: parse_naming,
    **ROUTE_PARSERS,
}

KNOWN = frozenset(_PARSERS)
"""The annotations that people may set."""
