"""How many decisions a second the autoscaler makes, what one costs, and how fast they replay."""

import json
import time

from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_contracts.services import Service
from tests.bench.configuration import configuration
from tests.bench.decision_rate import until_decided
from tests.bench.figure import Detail, Figure
from tests.bench.fleet import advised_model, engine_urls
from tests.bench.processes import cpu_seconds
from tests.bench.synthetic_samples import publish_rounds
from tests.support.platform import Platform, running_platform

TARGETS = 20
ROUNDS = 25
SILENT_SECONDS = 600
"""Between the collector's own samples, so that only this benchmark's are decided about."""


async def measure() -> list[Figure]:
    """Samples as fast as the bus takes them; then every decision computed again."""
    models = [f"model-{number:02}" for number in range(TARGETS)]
    settings = {"INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS": str(SILENT_SECONDS)}
    with running_platform("--startup", "0", environment=settings) as platform:
        platform.apply(*(document for model in models for document in advised_model(model)))
        async with platform.bus() as bus, platform.bus(Service.METRICS_COLLECTOR) as collector:
            await engine_urls(bus, models)
            spent = {name: -cpu_seconds(platform.pid(name)) for name in ("autoscaler", "nats")}
            began = time.monotonic()
            samples = await publish_rounds(collector, models, ROUNDS)
            await until_decided(bus, samples)
            seconds = time.monotonic() - began
            for name in spent:
                spent[name] += cpu_seconds(platform.pid(name))
        load = configuration(platform.directory, policies=TARGETS, mode=ApplyMode.ADVISE.value)
        return [_rate(seconds, spent, load), _replay(platform, load)]


def _rate(seconds: float, spent: dict[str, float], load: dict[str, Detail]) -> Figure:
    decisions = TARGETS * ROUNDS
    return Figure(
        name="decisions",
        value=round(decisions / seconds, 1),
        unit="decisions/s",
        meaning="samples published one after the other for each target, until the last decision "
        "stands on the bus: every sample changes its target's decision",
        configuration=load,
        detail={
            "decisions": decisions,
            **{
                f"{name}_cpu_ms_per_decision": round(cpu / decisions * 1000, 2)
                for name, cpu in spent.items()
            },
        },
    )


def _replay(platform: Platform, load: dict[str, Detail]) -> Figure:
    began = time.monotonic()
    told = json.loads(platform.inferbus("replay", "--verify", "-o", "json").stdout)
    seconds = time.monotonic() - began
    return Figure(
        name="replay",
        value=round(told["decisions"] / seconds, 1),
        unit="decisions/s",
        meaning="`inferbus replay --verify`: read every decision, compute it again from its record "
        "and compare the bytes, the start of the command included",
        configuration=load,
        detail={
            "seconds": round(seconds, 2),
            "decisions": told["decisions"],
            "identical": told["identical"],
        },
    )
