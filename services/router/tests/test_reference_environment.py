"""Variables of the reference's deployments, which the router understands too."""

from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_router.settings import RouterSettings
from inferbus_shared.settings import load_settings


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"ACCESS_LOG_FORMAT": "json"}, "access_log", "json"),
        ({"ACCESS_LOG_FORMAT": "text"}, "access_log", "text"),
        ({"ACCESS_LOG_ENABLED": "false"}, "access_log", "off"),
        ({"ACCESS_LOG_ENABLED": "0", "ACCESS_LOG_FORMAT": "json"}, "access_log", "off"),
        ({"ACCESS_LOG_ENABLED": "true"}, "access_log", "text"),
        ({"ACCESS_LOG_OUTPUT": "stdout"}, "access_log_path", None),
        ({"ACCESS_LOG_OUTPUT": "stderr"}, "access_log_path", Path("stderr")),
        ({"ACCESS_LOG_OUTPUT": "/a/b.log"}, "access_log_path", Path("/a/b.log")),
        ({"METRICS_SCRAPE_INTERVAL": "500ms"}, "engine_metrics_interval_seconds", 0.5),
        ({"DRAIN_TIMEOUT": "1m30s"}, "grace_seconds", 90),
        ({"DRAIN_TIMEOUT": ""}, "grace_seconds", 300),
        (
            {"ACCESS_LOG_FORMAT": "json", "INFERBUS_ROUTER_ACCESS_LOG": "text"},
            "access_log",
            "text",
        ),
        ({"DRAIN_TIMEOUT": "1h", "INFERBUS_ROUTER_GRACE_SECONDS": "7"}, "grace_seconds", 7),
    ],
)
def test_they_count_where_the_routers_own_are_not_set(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], field: str, value: Any
) -> None:
    for name, text in environment.items():
        monkeypatch.setenv(name, text)

    assert getattr(load_settings(RouterSettings), field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ACCESS_LOG_FORMAT", "xml"),
        ("ACCESS_LOG_ENABLED", "maybe"),
        ("METRICS_SCRAPE_INTERVAL", "5"),
        ("METRICS_SCRAPE_INTERVAL", "0s"),
        ("DRAIN_TIMEOUT", "-5m"),
    ],
)
def test_rt_36_a_value_without_a_meaning_is_an_error(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """The reference takes its default in silence."""
    monkeypatch.setenv(name, text)
    with pytest.raises(ProblemsError) as raised:
        load_settings(RouterSettings)

    (problem,) = raised.value.problems
    assert (problem.field, problem.value) == (name, text)
    assert name in problem.remedy
