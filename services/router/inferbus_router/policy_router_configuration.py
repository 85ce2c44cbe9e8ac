"""The reference's `routerConfiguration.yaml`: which plugins schedule, and who may ask (3.2).

Invariant: a document is taken whole or refused with everything that is wrong with it; what it says
without effect is told in `notes`, so that nothing in it is dropped in silence (the reference's
defect 36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_router.policy_authentication import AuthenticationPolicy
from inferbus_router.policy_plugins_cache import (
    DEFAULT_BLOCK_BYTES,
    DEFAULT_BLOCK_TOKENS,
    DEFAULT_CAPACITY,
    DEFAULT_MOST_BLOCKS,
    DEFAULT_TOP,
)
from inferbus_router.policy_plugins_load import (
    DEFAULT_LATENCY_WEIGHT,
    DEFAULT_MAX_WAITING_REQUESTS,
)

FilterName = Literal["least-request", "lora-affinity"]
ScoreName = Literal[
    "gpu-usage", "kvcache-aware", "least-latency", "least-request", "prefix-cache", "random"
]
PluginName = Literal[
    "gpu-usage",
    "kvcache-aware",
    "least-latency",
    "least-request",
    "lora-affinity",
    "prefix-cache",
    "random",
]
Place = tuple[str | int, ...]


class _Section(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, populate_by_name=True
    )


class LeastRequestArguments(_Section):
    """See `LeastRequestFilter`."""

    max_waiting_requests: int = DEFAULT_MAX_WAITING_REQUESTS


class LeastLatencyArguments(_Section):
    """See `LeastLatency`."""

    ttft_weight: Annotated[float, Field(alias="TTFTTPOTWeightFactor", ge=0, le=1)] = (
        DEFAULT_LATENCY_WEIGHT
    )


class PrefixCacheArguments(_Section):
    """See `prefix_cache`."""

    block_size_to_hash: int = DEFAULT_BLOCK_BYTES
    """Bytes."""
    max_blocks_to_match: int = DEFAULT_MOST_BLOCKS
    max_hash_cache_size: int = DEFAULT_CAPACITY
    top_k_matches: int = DEFAULT_TOP


class KvCacheArguments(_Section):
    """See `kvcache_aware`."""

    block_size_to_hash: int = DEFAULT_BLOCK_TOKENS
    """Tokens."""
    max_blocks_to_match: int = DEFAULT_MOST_BLOCKS
    vllm_tokenizer_port: int | None = None
    sglang_tokenizer_port: int | None = None


class NoArguments(_Section):
    """Of a plugin that has none."""


_ARGUMENTS: Mapping[str, type[_Section]] = {
    "gpu-usage": NoArguments,
    "kvcache-aware": KvCacheArguments,
    "least-latency": LeastLatencyArguments,
    "least-request": LeastRequestArguments,
    "lora-affinity": NoArguments,
    "prefix-cache": PrefixCacheArguments,
    "random": NoArguments,
}
_UNUSED_ARGUMENTS = frozenset({"vllm_tokenizer_port", "sglang_tokenizer_port"})


class _PluginConfig(_Section):
    name: PluginName
    args: dict[str, Any] = Field(default_factory=dict)


class _WeightedScore(_Section):
    name: ScoreName
    weight: int = 0


class _Filters(_Section):
    enabled: list[FilterName] = Field(default_factory=list)
    disabled: list[FilterName] = Field(default_factory=list)


class _Scores(_Section):
    enabled: list[_WeightedScore] = Field(default_factory=list)
    disabled: list[Any] = Field(default_factory=list)


class _Plugins(_Section):
    filters: Annotated[_Filters, Field(alias="Filter")] = _Filters()
    scores: Annotated[_Scores, Field(alias="Score")] = _Scores()


class _Scheduler(_Section):
    plugin_config: list[_PluginConfig] = Field(default_factory=list)
    plugins: _Plugins = _Plugins()


class _Document(_Section):
    scheduler: _Scheduler | None = None
    auth: AuthenticationPolicy = AuthenticationPolicy()


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """Plugins by name, in their order."""

    filters: tuple[str, ...]
    scores: tuple[tuple[str, int], ...]
    """With their weights, 0 or greater."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """By plugin name, the model of `_ARGUMENTS`."""


@dataclass(frozen=True, slots=True)
class RouterConfiguration:
    """What a file says."""

    scheduler: SchedulerConfiguration | None = None
    """None: the default scheduler."""
    authentication: AuthenticationPolicy = field(default_factory=AuthenticationPolicy)
    notes: tuple[str, ...] = ()
    """What stands in the file and has no effect, or another than it may seem."""


def read_configuration(
    value: Any, file: str, lines: Mapping[Place, int] | None = None
) -> RouterConfiguration:
    """The configuration in a YAML value; raises `ProblemsError` with every problem of it.

    `lines` tells on which line of `file` a field stands.
    """
    reader = _Reader(file, lines or {})
    document = reader.read(_Document, {} if value is None else value, ())
    scheduler = None
    if document is not None and document.scheduler is not None:
        scheduler = reader.scheduler(document.scheduler)
    if reader.problems or document is None:
        raise ProblemsError(*reader.problems)
    return RouterConfiguration(scheduler, document.auth, tuple(reader.notes))


_SectionT = TypeVar("_SectionT", bound=_Section)


class _Reader:
    """Gathers problems and notes on the way."""

    def __init__(self, file: str, lines: Mapping[Place, int]) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._file = file
        self._lines = lines

    def read(self, section: type[_SectionT], value: Any, place: Place) -> _SectionT | None:
        try:
            return section.model_validate(value)
        except ValidationError as error:
            for detail in error.errors():
                code, message = _told(detail["type"], detail["msg"], section)
                self._problem(code, (*place, *detail["loc"]), message, detail["input"])
            return None

    def scheduler(self, section: _Scheduler) -> SchedulerConfiguration:
        arguments: dict[str, Any] = {}
        for index, config in enumerate(section.plugin_config):
            place = ("scheduler", "pluginConfig", index, "args")
            read = self.read(_ARGUMENTS[config.name], config.args, place)
            if read is not None:
                arguments[config.name] = self._usable(config.name, read)
        for kind, disabled in (
            ("Filter", section.plugins.filters.disabled),
            ("Score", section.plugins.scores.disabled),
        ):
            if disabled:
                self.notes.append(f"{kind}.disabled has no effect: only what is enabled runs")
        filters = tuple(dict.fromkeys(section.plugins.filters.enabled))
        return SchedulerConfiguration(
            filters, self._scores(section.plugins.scores.enabled), arguments
        )

    def _usable(self, plugin: str, arguments: _Section) -> _Section:
        """The arguments with the default in place of a number that is none (spec 3.3)."""
        changes: dict[str, Any] = {}
        for name, declared in type(arguments).model_fields.items():
            value = getattr(arguments, name)
            if name in _UNUSED_ARGUMENTS and value is not None:
                self.notes.append(
                    f"{plugin}: {declared.alias} has no effect: engines are asked where they serve"
                )
            elif isinstance(declared.default, int) and value <= 0:
                changes[name] = declared.default
                self.notes.append(f"{plugin}: {declared.alias} {value} means {declared.default}")
        return arguments.model_copy(update=changes)

    def _scores(self, enabled: list[_WeightedScore]) -> tuple[tuple[str, int], ...]:
        weights: dict[str, int] = {}
        for score in enabled:
            if score.name in weights:
                self.notes.append(f"{score.name} is enabled twice: the last weight counts")
            if score.weight <= 0:
                self.notes.append(f"{score.name} has weight {score.weight}: its score is ignored")
            weights[score.name] = max(0, score.weight)
        if "random" in weights and len(weights) > 1:
            del weights["random"]
            self.notes.append("random is left out: it goes only with no other score plugin")
        return tuple(weights.items())

    def _problem(self, code: ErrorCode, place: Place, message: str, value: Any) -> None:
        around = (place[:end] for end in range(len(place), -1, -1))
        line = next((self._lines[known] for known in around if known in self._lines), None)
        self.problems.append(
            Problem(
                code=code,
                message=message,
                file=f"{self._file}:{line}" if line else self._file,
                field=_spelled(place) or None,
                value=shorten(value),
                remedy="correct the field; until then the configuration before it stays in force",
            )
        )


def _told(kind: str, message: str, section: type[_Section]) -> tuple[ErrorCode, str]:
    """The code and the wording of what pydantic found."""
    if kind == "extra_forbidden":
        known = ", ".join(
            sorted(field.alias or name for name, field in section.model_fields.items())
        )
        hint = f"; the arguments are {known}" if known and section in _ARGUMENTS.values() else ""
        return ErrorCode.UNKNOWN_FIELD, f"there is no such field{hint}"
    if kind == "missing":
        return ErrorCode.MISSING_FIELD, "this field is needed"
    if kind in ("model_type", "dict_type"):
        return ErrorCode.WRONG_TYPE, "this must be a mapping"
    return ErrorCode.VALUE_OUT_OF_RANGE, message[:1].lower() + message[1:]


def _spelled(place: Place) -> str:
    """`scheduler.pluginConfig[0].args`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
