"""The demo's pure parts: the trace it plays, what it measures, and how it says it."""

import io
import itertools
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from inferbus_contracts.events.scaling import (
    DecisionRecord,
    Limiter,
    LimiterStep,
    MetricReading,
    Mode,
    ScalingDecided,
)
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_engine_simulator.policy_tokens import tokenize
from tests.scenario.demo import program
from tests.scenario.demo.fleet import Replicas
from tests.scenario.demo.measured import WINDOW_MS, Answer, Measured, Present, Spread, quantile
from tests.scenario.demo.platform_session import DemoError, demo_platform
from tests.scenario.demo.screen import ModelView, View, lines, minutes, picture, screen
from tests.scenario.demo.sentences import sentence
from tests.scenario.demo.summary import ModelTotal, summary
from tests.scenario.demo.targets import example_targets
from tests.scenario.demo.trace import (
    MOST_PROMPT_TOKENS,
    Trace,
    TracedRequest,
    made_trace,
    read_trace,
    stretch,
)
from tests.scenario.demo.traffic import prompt

HOUR_MS = 3_600_000
CODER = ObjectKey("ModelServing", "default", "coder")


# The trace


def written(folder: Path, *rows: str) -> Path:
    file = folder / "trace.csv"
    file.write_text("\n".join(("TIMESTAMP,ContextTokens,GeneratedTokens", *rows)))
    return file


def test_a_trace_begins_at_its_first_request_and_is_in_order(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "2023-11-16 18:17:04.5000000,110,27",
        "2023-11-16 18:17:03.9799600,4808,10",
    )
    trace = read_trace(file)
    assert list(trace.requests) == [TracedRequest(0, 4808, 10), TracedRequest(520, 110, 27)]
    assert "Azure LLM inference trace 2023" in trace.origin
    assert "CC-BY 4.0" in trace.origin


def test_a_stretch_begins_at_nothing_and_ends_with_the_trace() -> None:
    trace = Trace("made", [TracedRequest(at, 1, 1) for at in (0, 999, 1000, 1500, 2000)], 2001)
    part = stretch(trace, 1000, 1000)
    assert [one.at_ms for one in part.requests] == [0, 500]
    assert part.length_ms == 1000
    assert stretch(trace, 1500, HOUR_MS).length_ms == 501


def test_the_real_stretch_has_traffic_in_its_first_minute_and_silence_later() -> None:
    if not program.TRACE_FILE.exists():
        pytest.skip(f"the trace is not beside this checkout: {program.TRACE_FILE}")
    trace = program.chosen_trace(20 * 60_000)
    per_minute = Counter(one.at_ms // 60_000 for one in trace.requests)
    assert per_minute[0] > 60
    assert min(per_minute[minute] for minute in range(20)) < 10


def test_a_made_trace_stands_in_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "TRACE_FILE", tmp_path / "absent.csv")
    trace = program.chosen_trace(120_000)
    assert trace.requests
    assert "Azure" not in trace.origin


def dispersion(times_ms: list[int], window_ms: int, length_ms: int = HOUR_MS) -> float:
    """Variance over mean of the arrivals per window; 1 for a Poisson process."""
    counts = Counter(at_ms // window_ms for at_ms in times_ms)
    rates = [counts[window] for window in range(length_ms // window_ms)]
    return statistics.variance(rates) / statistics.mean(rates)


def test_a_made_trace_has_the_shape_of_the_real_one() -> None:
    trace = made_trace(HOUR_MS)
    assert list(trace.requests) == list(made_trace(HOUR_MS).requests)
    assert all(0 <= a.at_ms <= b.at_ms < HOUR_MS for a, b in itertools.pairwise(trace.requests))
    prompts = [one.prompt_tokens for one in trace.requests]
    answers = [one.output_tokens for one in trace.requests]
    assert statistics.median(prompts) > 50 * statistics.median(answers)
    assert 1 <= min(prompts) <= max(prompts) <= MOST_PROMPT_TOKENS
    assert min(answers) >= 1
    assert 5 < dispersion([one.at_ms for one in trace.requests], 1_000) < 50
    assert 50 < dispersion([one.at_ms for one in trace.requests], 60_000) < 500
    first = [one.at_ms for one in trace.requests if one.at_ms < 60_000]
    assert dispersion(first, 1_000, 60_000) > 3, "bursts of seconds, and not of minutes alone"
    assert 1 < len(trace.requests) / 3600 < 10


@given(st.integers(0, 10**6), st.integers(1, 9000))
def test_a_prompt_has_its_tokens(index: int, tokens: int) -> None:
    assert len(tokenize(prompt(index, tokens))) == tokens


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(16, 100))
def test_no_two_prompts_begin_alike(one: int, other: int, tokens: int) -> None:
    block = 16 * 4
    assert (prompt(one, tokens)[:block] == prompt(other, tokens)[:block]) == (one == other)


# What is measured


def answer(sent_ms: float, total_ms: float, *, first_ms: float = 1, error: str = "") -> Answer:
    return Answer(sent_ms=sent_ms, first_token_ms=first_ms, total_ms=total_ms, error=error)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.sampled_from((0.5, 0.95, 1.0)))
def test_a_quantile_is_the_least_value_that_enough_of_them_do_not_exceed(
    values: list[int], share: float
) -> None:
    found = quantile(sorted(values), share)
    enough = share * len(values) - 1e-6
    assert sum(value <= found for value in values) >= enough
    assert all(sum(value <= less for value in values) < enough for less in values if less < found)


def test_the_present_is_the_last_minute() -> None:
    measured = Measured()
    for sent_ms in (0, 1_000, 61_000, 62_000, 63_000):
        measured.send(sent_ms)
    measured.answer(answer(0, 900, first_ms=800))
    measured.answer(answer(61_000, 200, first_ms=100))
    present = measured.present(61_500)
    assert present.in_flight == 3
    assert present.per_second == pytest.approx(3 / 60, rel=0.5)
    assert present.total == Spread(200, 200)
    assert present.first_token == Spread(100, 100)
    assert measured.present(63_000 + WINDOW_MS + 1).per_second == 0


def test_a_failed_answer_is_counted_and_its_time_is_not() -> None:
    measured = Measured()
    for at_ms in (0, 1):
        measured.send(at_ms)
    measured.answer(answer(0, 500))
    measured.answer(Answer(sent_ms=1, first_token_ms=None, total_ms=1, error="status 503"))
    present = measured.present(1000)
    assert present.in_flight == 0
    assert present.total == Spread(500, 500)
    assert measured.errors == {"status 503": 1}


def observed(desired: int, replicas: int, ready: int) -> WorkloadObserved:
    return WorkloadObserved(uid="u", generation=1, desired=desired, replicas=replicas, ready=ready)


def test_replicas_cost_from_when_they_are_made_whether_ready_or_not() -> None:
    replicas = Replicas(maximum=6)
    replicas.take(observed(5, 5, 5), -2_000)
    replicas.take(observed(1, 1, 1), -1_000)
    replicas.take(observed(3, 3, 1), 10_000)
    replicas.take(observed(2, 2, 2), 20_000)
    assert replicas.replica_seconds(25_000) == 1 * 10 + 3 * 10 + 2 * 5
    assert (replicas.least, replicas.most) == (1, 3)


# What is said


def decided(
    current: int,
    desired: int,
    *readings: tuple[str, float | None, int | None],
    steps: tuple[tuple[Limiter, int, int], ...] = (),
    binding: Limiter = Limiter.NONE,
    mode: Mode = Mode.STABLE,
) -> ScalingDecided:
    record = DecisionRecord(
        decider="autoscaler",
        version="1",
        policy="AutoscalingPolicy/default/coder",
        policy_digest="d",
        input={},
        metrics=[
            MetricReading(name=name, value=value, target=4, want=want)
            for name, value, want in readings
        ],
        limiters=[LimiterStep(name=name, before=a, after=b) for name, a, b in steps],
        binding=binding,
    )
    return ScalingDecided(
        current=current,
        desired=desired,
        mode=mode,
        target_uid="u",
        target_generation=1,
        record=record,
    )


RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


def test_a_free_decision_names_the_metric_that_asks_for_most() -> None:
    made = decided(1, 3, (RUNNING, 3, 1), (WAITING, 11, 3))
    assert sentence(CODER, made) == "coder 1 → 3: num_requests_waiting 11 at 4 a replica needs 3."


def test_a_held_decision_says_what_holds_it_and_where() -> None:
    steps = ((Limiter.BOUNDS, 7, 6), (Limiter.RATE, 6, 4))
    made = decided(2, 4, (RUNNING, 26, 7), steps=steps, binding=Limiter.RATE)
    assert sentence(CODER, made) == (
        "coder 2 → 4: num_requests_running 26 at 4 a replica needs 7, the rate limit allows 4."
    )


def test_a_decision_that_changes_nothing_says_so() -> None:
    step = ((Limiter.DATA, 3, 3),)
    made = decided(3, 3, (RUNNING, None, None), steps=step, binding=Limiter.DATA, mode=Mode.PANIC)
    said = sentence(CODER._replace(role="prefill"), made)
    assert said == (
        "coder/prefill stays at 3 in panic: no metric gave a value, the samples are not complete."
    )


@pytest.mark.parametrize("limiter", [one for one in Limiter if one is not Limiter.NONE])
def test_there_are_words_for_every_limiter(limiter: Limiter) -> None:
    made = decided(3, 3, (RUNNING, 8, 2), steps=((limiter, 2, 3),), binding=limiter)
    assert sentence(CODER, made).startswith("coder stays at 3: num_requests_running 8 ")
    assert not sentence(CODER, made).endswith("needs 2.")


def view(now_ms: float = 252_000) -> View:
    busy = Present(
        per_second=104.2,
        in_flight=10_431,
        first_token=Spread(1_500, 14_800),
        total=Spread(12_710, 115_300),
    )
    quiet = Present(
        per_second=0, in_flight=0, first_token=Spread(None, None), total=Spread(None, None)
    )
    return View(
        now_ms=now_ms,
        end_ms=1_200_000,
        sent=12_040,
        errors=3,
        models=[
            ModelView(
                name="coder",
                api="Kthena",
                replicas=Replicas(6, desired=5, standing=5, ready=2),
                present=busy,
            ),
            ModelView(
                name="qwen-3b",
                api="llmaz",
                replicas=Replicas(6, desired=1, standing=1, ready=1),
                present=quiet,
            ),
        ],
    )


def test_time_is_minutes_and_seconds() -> None:
    assert [minutes(at) for at in (-5, 0, 59_999, 60_000, 6_000_000)] == [
        "00:00",
        "00:00",
        "00:59",
        "01:00",
        "100:00",
    ]


def test_the_table_fits_into_eighty_columns() -> None:
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, color_system=None).print(picture(view()))
    text = out.getvalue()
    assert "■■▣▣▣· 2/5" in text
    assert "■····· 1/1" in text
    assert "04:12 of 20:00" in text
    assert "3 failed" in text
    assert "115s" in text
    assert len(text.splitlines()) == 6


def test_lines_say_the_same_in_words() -> None:
    busy, quiet = lines(view()).splitlines()
    assert busy.startswith("04:12  coder ")
    assert "2/5 ready" in busy
    assert "TTFT 1.50s / 14.8s" in busy
    assert quiet.endswith("total -")
    assert busy.index("ready") == quiet.index("ready")


def test_what_is_no_terminal_gets_plain_lines_now_and_then() -> None:
    out = io.StringIO()
    with screen(Console(file=out)) as shown:
        for seconds in (0.0, 0.25, 4.9, 5.1, 9.9):
            shown.show(view(), seconds)
        shown.say("[red]as it is[/red] :smile:", quiet=True)
    text = out.getvalue()
    assert text.count("coder") == 2
    assert text.endswith("[red]as it is[/red] :smile:\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)


def test_a_terminal_gets_a_table_that_goes_and_lines_that_stay() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with screen(console) as shown:
        shown.show(view(), 0.0)
        shown.say("04:12  coder stays")
        assert "■■" in out.getvalue()
    text = out.getvalue()
    assert "coder stays" in text
    assert text.rindex("\x1b[2K") > text.rindex("■■"), "the last table is wiped out"


def test_the_summary_compares_with_a_fleet_at_its_maximum() -> None:
    measured, replicas = Measured(), Replicas(maximum=4)
    replicas.take(observed(1, 1, 1), -1)
    for index in range(2000):
        measured.send(index)
        measured.answer(answer(index, 200, error="" if index else "cut off"))
    total = ModelTotal(name="coder", measured=measured, replicas=replicas, decisions=7, changes=5)
    text = summary([total], 100_000)
    assert "2,000" in text
    assert "What failed: 1 × cut off." in text
    assert text.endswith(
        "100 replica-seconds instead of the 400 of a fleet fixed at its maximum: 75% less."
    )


def test_the_models_of_both_apis_are_played() -> None:
    targets = example_targets()
    assert [one.api for one in targets] == ["Kthena", "llmaz"]
    assert all(one.max_replicas > 1 for one in targets)


def test_a_platform_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "platform.json").write_text("{}")
    with (
        pytest.raises(DemoError, match="already"),
        demo_platform(Console(file=io.StringIO()), tmp_path, (), keep=False),
    ):
        raise AssertionError("not reached")
    assert (tmp_path / "platform.json").read_text() == "{}"
