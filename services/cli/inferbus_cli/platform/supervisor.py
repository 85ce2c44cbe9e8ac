"""Starts the platform's processes and keeps them running.

The supervisor is not needed for the platform to work: killed, it leaves everything running, and the
next one adopts it. Invariant: what it knows stands in the platform's folder, and starting what runs
already changes nothing.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.embedded_nats import binary, wait_until_ready, write_config
from inferbus_cli.platform.family import Family
from inferbus_cli.platform.health import unready
from inferbus_cli.platform.plan import (
    NATS,
    PRELOADED,
    PROVISION,
    ROUTER_SOCKET,
    SUBNET_SOCKET,
    PlatformOptions,
    ProcessPlan,
    process_plans,
)
from inferbus_cli.platform.policy_restarts import RestartState, ended, started
from inferbus_cli.platform.provisioning import wanted
from inferbus_cli.platform.report import (
    FAILED,
    READY,
    STARTING,
    STOPPING,
    ProcessReport,
    SupervisorReport,
)
from inferbus_cli.platform.stopping import stop_everything
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_shared.clock import real_now_ms
from inferbus_shared.processes.addresses import Subnet, claim_subnet
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import keep, listen, listeners
from inferbus_shared.processes.files import read_json
from inferbus_shared.processes.identity import ProcessIdentity, own_identity
from inferbus_shared.processes.logs import LogLimit, trim_log
from inferbus_shared.processes.records import read_exit_record
from inferbus_shared.processes.start import start_fork_server
from inferbus_shared.program import EXIT_BAD_INPUT, run_program

READY_SECONDS = 60.0
PROVISION_SECONDS = 30.0
WAKE_SECONDS = 1.0
TRIM_SECONDS = 30.0
LOG_LIMIT = LogLimit(16 * 1024 * 1024, 2)
_POLL_SECONDS = 0.02


class StopRequested(BaseException):
    """SIGTERM or SIGINT arrived."""


class Supervisor:
    """One platform's supervisor."""

    def __init__(
        self, directory: PlatformDirectory, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        """`tell` is called with each step, in a few words."""
        self._directory = directory
        self._state = directory.state()
        self._tell = tell
        self._plans: dict[str, ProcessPlan] = {}
        self._restarts: dict[str, RestartState] = {}
        self._processes: dict[str, tuple[ProcessIdentity | None, int]] = {}
        self._client: ForkServerClient | None = None
        self._phase = STARTING
        self._trimmed = 0.0

    def run(self) -> None:
        """Start everything, then watch it until told to stop; raises what prevents a start."""
        _raise_on_signals()
        try:
            self._start()
            self._watch()
        except StopRequested:
            self._stop()
        except ProblemsError as error:
            self._fail(error)
            raise

    def _start(self) -> None:
        for folder in (self._directory.run, self._directory.logs, self._directory.manifests):
            folder.mkdir(parents=True, exist_ok=True)
        self._step("starting the fork server")
        family = self._connect()
        self._step("starting the event log")
        self._start_nats(family)
        self._step("preparing streams")
        self._provision(family)
        self._step("starting services")
        self._start_services(family)
        self._step("waiting until services are ready")
        self._wait_until_ready()
        self._phase = READY
        self._step("watching")

    def _connect(self) -> Family:
        """The family behind a fork server that runs, with sockets and subnet in its hands."""
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        log = self._directory.logs / "fork-server.log"
        start_fork_server(self._directory.fork_server_socket, PRELOADED, log, environment)
        self._client = ForkServerClient(self._directory.fork_server_socket)
        subnet = self._claim_subnet(self._client)
        self._plan(subnet)
        family = Family(self._directory, self._client)
        routers = [plan.name for plan in self._plans.values() if plan.service is Service.ROUTER]
        workers = [found for name in routers if (found := family.running(name)) is not None]
        self._client.call(listen(ROUTER_SOCKET, "127.0.0.1", self._state.router_port, workers))
        return family

    def _claim_subnet(self, client: ForkServerClient) -> Subnet:
        memory = self._directory.root / "subnet.json"
        if SUBNET_SOCKET in client.call(listeners()):
            known = read_json(memory)
            assert known is not None, "a claimed subnet is remembered"
            return Subnet(known["subnet"])
        claim = claim_subnet(self._directory.root)
        assert claim.lock is not None
        client.call(keep(SUBNET_SOCKET, claim.lock.fileno()))
        claim.lock.close()
        return claim.subnet

    def _plan(self, subnet: Subnet) -> None:
        options = PlatformOptions(
            instances={Service(name): n for name, n in self._state.instances.items()},
            environment=self._state.environment,
        )
        plans = process_plans(self._directory, self._state, options, subnet, os.environ)
        self._plans = {plan.name: plan for plan in plans}

    def _start_nats(self, family: Family) -> None:
        if family.running(NATS) is None:
            config = write_config(self._directory, self._state)
        else:
            config = self._directory.nats / "nats.conf"
        environment = {**os.environ, "GOMEMLIMIT": "128MiB"}
        argv = [str(binary()), "-c", str(config)]
        self._begin(NATS, family.find_or_start(NATS, argv=argv, environment=environment))
        wait_until_ready(self._directory)

    def _provision(self, family: Family) -> None:
        environment = {
            **os.environ,
            "INFERBUS_NATS_URL": f"nats://127.0.0.1:{self._state.nats_port}",
            "INFERBUS_NATS_CREDENTIALS": str(self._directory.credentials_of(Service.PROVISIONER)),
        }
        family.find_or_start(
            PROVISION,
            entry_point="inferbus_cli.platform.provisioning:main",
            argv=[wanted(self._directory, self._state)],
            environment=environment,
        )
        code = self._exit_code(PROVISION, PROVISION_SECONDS)
        if code != 0:
            raise ProblemsError(self._said(PROVISION, f"ended with exit code {code}"))

    def _start_services(self, family: Family) -> None:
        for plan in self._plans.values():
            self._start_process(family, plan)

    def _start_process(self, family: Family, plan: ProcessPlan) -> None:
        identity = family.find_or_start(
            plan.name,
            entry_point=plan.entry_point,
            environment=plan.environment,
            listeners=plan.listeners,
        )
        self._begin(plan.name, identity)

    def _begin(self, name: str, identity: ProcessIdentity) -> None:
        before, _ = self._processes.get(name, (None, 0))
        if before != identity:
            self._processes[name] = (identity, real_now_ms())
            state = self._restarts.get(name, RestartState())
            self._restarts[name] = started(state, time.monotonic())
        self._write()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        waiting = {plan.name: plan.health_url for plan in self._plans.values()}
        while waiting:
            reasons = unready(waiting.items())
            waiting = {name: url for name, url in waiting.items() if name in reasons}
            for name in waiting:
                if self._exit_code(name, 0) == EXIT_BAD_INPUT:
                    raise ProblemsError(self._said(name, "can't start"))
            if time.monotonic() > deadline:
                raise ProblemsError(*(self._said(name, reasons[name]) for name in waiting))
            self._look_after(_POLL_SECONDS if waiting else 0)

    def _watch(self) -> None:
        while True:
            self._look_after(WAKE_SECONDS)
            self._trim_logs()

    def _look_after(self, seconds: float) -> None:
        """Wait for an end, at most `seconds`; start again what is due."""
        assert self._client is not None
        try:
            event = self._client.next_event(seconds)
            if event is not None and event.exit is not None:
                self._ended(event.child.name, event.child.identity)
            self._restart_due(Family(self._directory, self._client))
        except ProblemsError as error:
            if error.problems[0].code is not ErrorCode.NOT_RUNNING:
                raise
            self._recover()

    def _recover(self) -> None:
        """The fork server died: a new one takes over what still runs."""
        if self._client is not None:
            self._client.close()
        family = self._connect()
        for name in self._processes:
            if family.running(name) is None:
                self._ended(name, None)
        self._restart_due(family)
        for name in self._plans:
            if family.running(name) is not None:
                self._start_process(family, self._plans[name])

    def _ended(self, name: str, identity: ProcessIdentity | None) -> None:
        known, began_ms = self._processes.get(name, (None, 0))
        if known is None or (identity is not None and identity != known):
            return
        self._processes[name] = (None, began_ms)
        self._restarts[name] = ended(self._restarts[name], time.monotonic())
        self._write()

    def _restart_due(self, family: Family) -> None:
        now = time.monotonic()
        for name, state in self._restarts.items():
            if state.due_at is None or state.due_at > now:
                continue
            if name == NATS:
                self._start_nats(family)
            else:
                self._start_process(family, self._plans[name])

    def _stop(self) -> None:
        self._phase = STOPPING
        self._step("stopping")
        stop_everything(self._directory)
        self._directory.supervisor_file.unlink(missing_ok=True)

    def _fail(self, error: ProblemsError) -> None:
        self._phase = FAILED
        self._step("failed")
        stop_everything(self._directory)
        self._write(error.problems)

    def _step(self, step: str) -> None:
        self._current = step
        self._tell(step)
        self._write()

    def _write(self, problems: Sequence[Problem] = ()) -> None:
        SupervisorReport(
            supervisor=own_identity(),
            phase=self._phase,
            step=self._current,
            problems=tuple(problems),
            processes=tuple(
                ProcessReport(
                    name=name,
                    identity=identity,
                    restarts=self._restarts[name].restarts,
                    started_ms=began_ms,
                    health_url=self._plans[name].health_url if name in self._plans else "",
                )
                for name, (identity, began_ms) in self._processes.items()
            ),
        ).write(self._directory.supervisor_file)

    def _exit_code(self, name: str, seconds: float) -> int | None:
        """The exit code of a process that ends within `seconds`; None when it doesn't."""
        path = self._directory.run / f"{name}.exit.json"
        deadline = time.monotonic() + seconds
        while (record := read_exit_record(path)) is None:
            if time.monotonic() >= deadline:
                return None
            time.sleep(_POLL_SECONDS)
        return record.code if record.code is not None else -(record.signal or 1)

    def _said(self, name: str, what: str) -> Problem:
        """The problem of a process, in its own words where it left any."""
        log = self._directory.logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        words = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return Problem(
            code=ErrorCode.PROCESS_FAILED,
            message=f"{name} {what}{': ' + words[-1] if words else ''}",
            file=str(log),
            remedy="see its log, mend the cause and start again",
        )

    def _trim_logs(self) -> None:
        now = time.monotonic()
        if now - self._trimmed < TRIM_SECONDS:
            return
        self._trimmed = now
        for log in self._directory.logs.glob("*.log"):
            trim_log(log, LOG_LIMIT)


def _raise_on_signals() -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise StopRequested

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def main(argv: Sequence[str]) -> int:
    """`[platform folder]`: supervise it until SIGTERM."""
    return run_program(Supervisor(PlatformDirectory(Path(argv[0]))).run)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
