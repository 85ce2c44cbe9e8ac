"""Runs the machine-readable vectors of the autoscaling reference against the pure compat rules.

    uv run python -m tests.conformance.autoscaling FILE...

A file holds one case a line: {"id", "op", "input", "expect"}. Prints every failure with what was
expected and what came, then one line `N passed, M failed`; exits with 1 when anything failed.
Results are compared exactly, floats to the last bit. One order is left open: that of blocks of the
same target and sort cost (only targets that cost nothing have such blocks of different sizes). The
reference sorts them with an unstable sort and declares that they don't matter (autoscaling spec
3.2); no allocation depends on them.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_compat_head import CompatLoop, LoopResult, run_loop
from inferbus_autoscaler.policy_correction import HEAD_MIX_RULES
from inferbus_autoscaler.policy_external import aggregate_external
from inferbus_autoscaler.policy_histogram import Histogram, quantile
from inferbus_autoscaler.policy_ratio import RoleReplicas, repair
from inferbus_autoscaler.policy_recommendation import RecommendationInput, recommend
from inferbus_autoscaler.policy_windows import Best, RateWindow, SnapshotWindow
from inferbus_contracts.errors import ProblemsError
from inferbus_optimizer.policy_compat_blocks import MixTarget, allocate, blocks

Json = dict[str, Any]

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip


def quantity(text: str) -> float:
    """A Kubernetes quantity as the nearest float64 of its decimal value."""
    match = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", text)
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity")
    return float(Decimal(match[1]) * _SUFFIXES[match[2]])


def run_recommend(given: Json) -> Json:
    want = recommend(
        RecommendationInput(
            min_replicas=given["min"],
            max_replicas=given["max"],
            current=given["current"],
            tolerance_percent=given["tolerancePercent"],
            targets=given["targets"],
            entries=given["perTargetSums"],
            unready_pods=given["unreadyPods"],
            external_totals=given["externalTotals"],
        )
    )
    return {"replicas": want, "skip": want is None}


def run_homogeneous(given: Json) -> list[Json]:
    behaviour = _behaviour(given["behavior"])
    loop, current, results = CompatLoop.first(behaviour), given["startReplicas"], []
    for step in given["steps"]:
        pods, external = step["podSum"], step["externalTotal"]
        result = run_loop(
            loop,
            RecommendationInput(
                min_replicas=given["min"],
                max_replicas=given["max"],
                current=current,
                tolerance_percent=given["tolerancePercent"],
                targets={"m": quantity(given["target"])},
                entries=[{} if pods is None else {"m": pods}],
                unready_pods=step["unreadyPods"],
                external_totals={} if external is None else {"m": external},
            ),
            behaviour,
            step["tMs"],
        )
        loop = result.loop
        current = current if result.applied is None else result.applied
        results.append(
            {"replicas": result.applied, "panicAfter": _panic_after(result, given, step)}
        )
    return results


def run_heterogeneous(given: Json) -> list[Json]:
    behaviour = _behaviour(given["behavior"])
    targets = _mix(given["params"])
    order = blocks(targets, given["costExpansionRatePercent"])
    loop, current, results = CompatLoop.first(behaviour), tuple(given["startReplicas"]), []
    for step in given["steps"]:
        result = run_loop(
            loop,
            RecommendationInput(
                min_replicas=sum(target.min_replicas for target in targets),
                max_replicas=sum(target.max_replicas for target in targets),
                current=sum(current),
                tolerance_percent=given["tolerancePercent"],
                targets={"m": quantity(given["target"])},
                entries=[{} if value is None else {"m": value} for value in step["podSums"]],
                unready_pods=sum(step["unreadyPods"]),
            ),
            behaviour,
            step["tMs"],
            HEAD_MIX_RULES,
        )
        loop = result.loop
        if result.applied is not None:
            current = allocate(targets, order, result.applied)
        replicas = None if result.applied is None else list(current)
        results.append({"replicas": replicas, "panicAfter": _panic_after(result, given, step)})
    return results


def run_allocate(given: Json) -> Json:
    targets = _mix(given["params"])
    order = blocks(targets, given["costExpansionRatePercent"])
    return {
        "blocks": [
            {
                "target": targets[block.target].name,
                "replicas": block.replicas,
                "sortCost": block.sort_cost,
            }
            for block in order
        ],
        "allocations": [list(allocate(targets, order, total)) for total in given["totals"]],
    }


def run_ratio(given: Json) -> Json:
    repaired = repair(
        RoleReplicas(given["numerator"], *given["numBounds"]),
        RoleReplicas(given["denominator"], *given["denBounds"]),
        (quantity(given["minRatio"]), quantity(given["maxRatio"])),
    )
    return {
        "numerator": repaired.numerator,
        "denominator": repaired.denominator,
        "adjusted": repaired.adjusted,
        "currentRatio": repaired.ratio,
    }


def run_quantile(given: Json) -> Json:
    now = _histogram(given["nowBuckets"], given["nowCount"])
    past = _histogram(given["pastBuckets"], given["pastCount"])
    try:
        return {"value": quantile(given["percentile"], now, past), "error": False}
    except ProblemsError:
        return {"value": None, "error": True}


def run_rate_window(given: Json) -> list[int | None]:
    window, results = RateWindow(Best(given["kind"]), given["windowMs"]), []
    for event in given["events"]:
        answer = None
        if "append" in event:
            window = window.appended(event["append"], event["tMs"])
        else:
            answer = window.extreme(event["query"], event["tMs"])
        results.append(answer)
    return results


def run_snapshot_window(given: Json) -> list[int | str | None]:
    window: SnapshotWindow[int] = SnapshotWindow(given["freshMs"], given["expireMs"])
    results: list[int | str | None] = []
    for event in given["events"]:
        if "append" in event:
            window = window.appended(event["append"], event["tMs"])
            results.append(None)
        else:
            baseline = window.baseline(event["tMs"])
            results.append("none" if baseline is None else baseline)
    return results


def run_external_aggregate(given: Json) -> float:
    return aggregate_external(given["metric"], given["values"], given["replicas"])


OPS: dict[str, Callable[[Json], Any]] = {
    "recommend": run_recommend,
    "homogeneous_sequence": run_homogeneous,
    "heterogeneous_sequence_HEAD": run_heterogeneous,
    "optimizer_allocate": run_allocate,
    "ratio_HEAD": run_ratio,
    "histogram_quantile": run_quantile,
    "rate_window": run_rate_window,
    "snapshot_window": run_snapshot_window,
    "external_aggregate_HEAD": run_external_aggregate,
}


def failure(case: Json) -> str | None:
    """What is wrong with the result of one case; None where it is as expected."""
    if case["op"] not in OPS:
        return f"no rule for op {case['op']!r}; known: {', '.join(sorted(OPS))}"
    got, expected = OPS[case["op"]](case["input"]), case["expect"]
    if got == expected or (case["op"] == "optimizer_allocate" and _tied(got) == _tied(expected)):
        return None
    return f"expected {json.dumps(expected)}\n     got {json.dumps(got)}"


def cases(paths: Iterable[str]) -> Iterator[Json]:
    """Every case of the files, in order."""
    for path in paths:
        for line in Path(path).read_text().splitlines():
            if line.strip():
                yield json.loads(line)


def main(paths: list[str]) -> int:
    """Run the files and print the outcome; the exit code."""
    passed = failed = 0
    for case in cases(paths):
        wrong = failure(case)
        if wrong is None:
            passed += 1
            continue
        failed += 1
        print(f"{case['id']} ({case['op']}): {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _behaviour(given: Json) -> Behaviour:
    panic = given["panic"]
    return Behaviour(
        scale_down=_step_policy(given["scaleDown"]),
        scale_up=_step_policy(given["scaleUpStable"]),
        panic=PanicPolicy(
            threshold_percent=panic["panicThresholdPercent"],
            hold_ms=panic["panicModeHoldMs"],
            percent=panic["percent"],
            period_ms=panic["periodMs"],
        ),
    )


def _step_policy(given: Json) -> StepPolicy:
    return StepPolicy(
        instances=given["instances"],
        percent=given["percent"],
        period_ms=given["periodMs"],
        select=given["selectPolicy"],
        stabilisation_ms=given["stabilizationWindowMs"],
    )


def _mix(params: list[Json]) -> list[MixTarget]:
    return [
        MixTarget(
            name=param["name"],
            cost=param["cost"],
            min_replicas=param["min"],
            max_replicas=param["max"],
        )
        for param in params
    ]


def _histogram(pairs: list[list[Any]] | None, count: int | None) -> Histogram:
    bounds = [
        (math.inf if le == "+Inf" else float(le), cumulative) for le, cumulative in pairs or ()
    ]
    return Histogram(bounds, count or 0)


def _tied(result: Json) -> Json:
    """An allocation result in which neighbours of one target and sort cost stand by size."""
    runs = groupby(result["blocks"], key=lambda block: (block["target"], block["sortCost"]))
    return result | {
        "blocks": [(key, sorted(block["replicas"] for block in run)) for key, run in runs]
    }


def _panic_after(result: LoopResult, given: Json, step: Json) -> bool:
    return result.loop.in_panic(_behaviour(given["behavior"]), step["tMs"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
