import pytest

from inferbus_contracts.resources import annotations as own


@pytest.mark.parametrize(
    ("text", "metric", "limit_ms", "percent"),
    [("ttft=2s@99.5%", "ttft", 2000, 99.5), ("wait=500ms@100%", "wait", 500, 100.0)],
)
def test_objectives(text: str, metric: str, limit_ms: int, percent: float) -> None:
    objective = own.parse_objective(text)
    assert (objective.metric, objective.limit_ms, objective.percent) == (metric, limit_ms, percent)


@pytest.mark.parametrize(
    ("text", "unit", "rate"),
    [
        ("requests=2.5/s", "requests", 2.5),
        ("tokens=9000/s", "tokens", 9000.0),
        ("tokens=9k/s", "tokens", 9000.0),
    ],
)
def test_capacities(text: str, unit: str, rate: float) -> None:
    capacity = own.parse_capacity(text)
    assert (capacity.unit, capacity.per_second) == (unit, rate)


def test_forecasts() -> None:
    assert own.parse_forecasting("daily") is own.Forecasting.DAILY


def test_how_updates_and_groups_go() -> None:
    assert own.parse_paused("true") is True
    assert own.parse_paused("false") is False
    assert own.parse_deadline_ms("30m") == 1_800_000
    both = own.parse_startup_order("roles-in-order, entry-first")
    assert both == {own.StartupStep.ENTRY_FIRST, own.StartupStep.ROLES_IN_ORDER}


def test_tolerations() -> None:
    assert own.parse_tolerations('[{"key": "gpu"}]') == [{"key": "gpu"}]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("objective", "ttft<2s", "ttft=2s@99.5%"),
        ("forecast", "weekly", "daily"),
        ("objective", "tpot=2s@99%", "ttft, wait"),
        ("objective", "ttft=2@99%", "duration"),
        ("objective", "ttft=0s@99%", "above 0"),
        ("objective", "ttft=2s@0%", "above 0"),
        ("objective", "ttft=2s@101%", "up to 100"),
        ("capacity", "requests=2.5", "requests=2.5/s"),
        ("capacity", "requests=0/s", "above 0"),
        ("capacity", "users=3/s", "requests, tokens"),
        ("mode", "manual", "advise, approve, auto"),
        ("rate-limit-per", "user", "name, principal"),
        ("authentication", "optional", "none, required"),
        ("compat", "v1", "kthena-head, kthena-v0.1"),
        ("scaler", "keda", "hpa, inferbus"),
        ("model-name", " ", "empty"),
        ("paused", "yes", "true or false"),
        ("progress-deadline", "0s", "above 0"),
        ("progress-deadline", "soon", "duration"),
        ("try-timeout", "0s", "above 0"),
        ("startup-order", "last-first", "entry-first, roles-in-order"),
        ("tolerations", "{", "JSON list"),
        ("tolerations", "{}", "list of mappings"),
        ("prefill-min-tokens", "-1", "whole number"),
        ("bootstrap-port", "0", "port"),
    ],
)
def test_a_bad_value_is_told(name: str, value: str, said: str) -> None:
    assert said in (own.problem_of(f"inferbus.dev/{name}", value) or "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("objective", "wait=2s@99.9%"),
        ("mode", "approve"),
        ("compat", "kthena-head"),
        ("scaler", "hpa"),
        ("rate-limit-per", "name, principal"),
        ("rate-limit-per", "route"),
        ("authentication", "none"),
        ("prefill-min-tokens", "0"),
        ("bootstrap-port", "8998"),
        ("model-name", "org/Model-1.5"),
        ("something-else", "anything"),
    ],
)
def test_a_good_value_is_no_problem(name: str, value: str) -> None:
    assert own.problem_of(f"inferbus.dev/{name}", value) is None


def test_compat_of() -> None:
    assert own.compat_of({}) is None
    assert own.compat_of({own.COMPAT: "kthena-v0.1"}) is own.Compat.KTHENA_V01
