"""Settings that the reference's deployments give under its own names (routing spec, section 0).

Invariant: they count only where the router's own variable isn't set, and a value without a meaning
is an error, where the reference takes its default in silence.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_TRUE, _FALSE = frozenset({"1", "t", "true"}), frozenset({"0", "f", "false"})


class ReferenceEnvironment(PydanticBaseSettingsSource):
    """The last source of the router's settings."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Required by the base; all fields come together in `__call__`."""
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The settings by field; raises `ProblemsError`."""
        return reference_settings(os.environ)


def reference_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """What these variables mean; raises `ProblemsError` with each that means nothing."""
    reader = _Reader(environment)
    form = reader.read("ACCESS_LOG_FORMAT", _form, "`text` or `json`")
    if reader.read("ACCESS_LOG_ENABLED", _truth, "`true` or `false`") is False:
        form = "off"
    output = environment.get("ACCESS_LOG_OUTPUT")
    interval = reader.read("METRICS_SCRAPE_INTERVAL", _seconds, "a duration such as `500ms`")
    grace = reader.read("DRAIN_TIMEOUT", _seconds, "a duration such as `5m`")
    known = {
        "access_log": form,
        "access_log_path": output if output != "stdout" else None,
        "engine_metrics_interval_seconds": interval,
        "grace_seconds": grace,
        "kv_redis_host": environment.get("REDIS_HOST"),
        "kv_redis_port": environment.get("REDIS_PORT"),
        "kv_redis_password": environment.get("REDIS_PASSWORD"),
    }
    settings = {name: value for name, value in known.items() if value}
    if reader.problems:
        raise ProblemsError(*reader.problems)
    return settings


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self._environment = environment

    def read(self, name: str, meaning: Callable[[str], Any], wanted: str) -> Any:
        """The meaning of a variable; None where it isn't set, or means nothing."""
        text = self._environment.get(name)
        if not text:
            return None
        value = meaning(text)
        if value is None:
            self.problems.append(
                Problem(
                    code=ErrorCode.BAD_SETTING,
                    message="this value has no meaning",
                    field=name,
                    value=text,
                    remedy=f"set {name} to {wanted}, or unset it",
                )
            )
        return value


def _form(text: str) -> str | None:
    return text if text in ("text", "json") else None


def _truth(text: str) -> bool | None:
    """As Go's strconv.ParseBool reads it."""
    if text.lower() in _TRUE:
        return True
    return False if text.lower() in _FALSE else None


def _seconds(text: str) -> float | None:
    """A positive duration as Go's time.ParseDuration reads it."""
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    return seconds if seconds > 0 else None
