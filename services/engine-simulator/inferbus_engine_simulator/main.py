"""`inferbus-engine-simulator <the engine's command line>`.

The node agent starts it where a pod has an engine container: as a program, or by calling `main` in
a forked process. Exit codes: 0 after SIGTERM or SIGINT, 1 when the port is taken, 2 for a bad
command line or setting.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_engine_simulator.effects import EngineRunner
from inferbus_engine_simulator.policy_accelerators import accelerator
from inferbus_engine_simulator.policy_command_line import (
    Defaults,
    ServerOptions,
    parse_command_line,
)
from inferbus_engine_simulator.policy_engine_flags import EngineKind
from inferbus_engine_simulator.policy_faults import Fault, FaultPlan, parse_faults
from inferbus_engine_simulator.policy_rooms import Side
from inferbus_engine_simulator.policy_sizing import EngineSize, size_engine
from inferbus_engine_simulator.server import bind, build_app, serve
from inferbus_engine_simulator.settings import PlatformSettings, SimulatorSettings
from inferbus_shared.clock import Anchor, SystemClock, real_now_ms
from inferbus_shared.settings import load_settings
from inferbus_shared.telemetry import set_up_logging

_FAULTS_VARIABLE = "INFERBUS_ENGINE_SIMULATOR_FAULTS"
_LOCAL_HOSTS = frozenset({"", "0.0.0.0", "::", "[::]", "localhost", "127.0.0.1"})

_log = logging.getLogger("inferbus.engine_simulator")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one engine until it is told to stop; answers the exit code.

    `argv` is the engine's own command line, by default the arguments of this process.
    """
    set_up_logging("engine-simulator")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return asyncio.run(_run(words, os.environ))
    except ProblemsError as error:
        for problem in error.problems:
            _log.error("not started", extra={"problem": str(problem)})
        taken = all(problem.code is ErrorCode.PORT_IN_USE for problem in error.problems)
        return 1 if taken else 2


async def _run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    settings = load_settings(SimulatorSettings)
    platform = load_settings(PlatformSettings)
    options = parse_command_line(
        words,
        environment,
        Defaults(settings.engine, settings.default_port, settings.default_model),
    )
    size = _size(options, settings)
    faults = FaultPlan(_faults(settings.faults), settings.seed)
    rate = settings.speed or platform.clock_rate
    clock = SystemClock(Anchor(real_ms=(now := real_now_ms()), virtual_ms=now, rate=rate))
    runner = EngineRunner(options, size, clock, faults, settings.seed)
    host = _host(options.host, platform.pod_ip)
    updates, patience = _adapter_updates(options, environment), settings.bootstrap_timeout_seconds
    app = build_app(runner, host, updates, os._exit, patience)
    listener = bind(host, options.port)
    rooms = bind(host, options.bootstrap_port) if _has_rooms(options) else None
    _tell(options, size, host)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(app, runner, listener, stop, settings.drain_seconds, rooms)
    return 0


def _size(options: ServerOptions, settings: SimulatorSettings) -> EngineSize:
    size = size_engine(options, accelerator(settings.accelerator), settings.model_billions)
    if settings.startup_seconds is not None:
        size = size._replace(startup_ms=round(settings.startup_seconds * 1000))
    return size


def _faults(text: str) -> list[Fault]:
    if not text:
        return []
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message=f"the faults are no JSON: {error}",
                field=_FAULTS_VARIABLE,
                value=text,
                remedy='give a list such as [{"kind": "error", "probability": 0.1}]',
            )
        ) from None
    return parse_faults(document, _FAULTS_VARIABLE)


def _host(written: str, pod_ip: str) -> str:
    if pod_ip and written in _LOCAL_HOSTS:
        return pod_ip
    return "127.0.0.1" if written in ("", "localhost") else written.strip("[]")


def _adapter_updates(options: ServerOptions, environment: Mapping[str, str]) -> bool:
    allowed = environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").lower() in ("1", "true")
    return allowed or options.engine is EngineKind.SGLANG


def _has_rooms(options: ServerOptions) -> bool:
    return options.meets_in_rooms and options.kv_role == Side.PREFILL and not options.headless


def _tell(options: ServerOptions, size: EngineSize, host: str) -> None:
    for flag in options.ignored:
        known = {"flag": flag.flag, "values": " ".join(flag.values)}
        if flag.hint:
            _log.warning("unknown flag ignored", extra={**known, "known_flag": flag.hint})
        else:
            _log.info("flag without effect", extra=known)
    if size.short_of_memory:
        _log.warning("the model does not fit: a real engine would not start")
    _log.info(
        "engine starting",
        extra={
            "engine": options.engine.value,
            "models": ",".join(options.served_model_names),
            "address": f"{host}:{options.port}",
            "startup_ms": size.startup_ms,
            "blocks": size.limits.blocks,
        },
    )


if __name__ == "__main__":
    sys.exit(main())
