"""Settings from the environment, and what is said about bad ones."""

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from inferbus_shared.settings import load_settings

PREFIX = "INFERBUS_METRICS_COLLECTOR_"


def test_grants_are_pairs_of_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}NAMESPACE_GRANTS", "policies/models, */shared")
    monkeypatch.setenv(f"{PREFIX}INTERVAL_SECONDS", "2.5")
    settings = load_settings(MetricsCollectorSettings)
    assert settings.namespace_grants == {("policies", "models"), ("*", "shared")}
    assert settings.interval_seconds == 2.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NAMESPACE_GRANTS", "policies"),
        ("NAMESPACE_GRANTS", "a/b/c"),
        ("NAMESPACE_GRANTS", "/b"),
        ("INTERVAL_SECONDS", "0"),
        ("MOST_PAGE_BYTES", "much"),
    ],
)
def test_a_bad_setting_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"{PREFIX}{name}", value)
    with pytest.raises(ProblemsError) as caught:
        load_settings(MetricsCollectorSettings)
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (ErrorCode.BAD_SETTING, f"{PREFIX}{name}")


def test_as_d25_the_own_machine_is_out_of_reach_inside_a_cluster_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert load_settings(MetricsCollectorSettings).loopback
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert not load_settings(MetricsCollectorSettings).loopback
    monkeypatch.setenv(f"{PREFIX}LOOPBACK", "true")
    assert load_settings(MetricsCollectorSettings).loopback
