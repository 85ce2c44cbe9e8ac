"""When a container that ended is started again.

The first restart is immediate, then the back-off begins and doubles; a container that ran for twice
the longest back-off starts over (kubelet's rule).
"""

from dataclasses import replace

from inferbus_node_agent.plan import Timing
from inferbus_node_agent.pods import RestartPolicy
from inferbus_node_agent.state import ContainerState, Ended, Stage

CRASH_LOOP = "CrashLoopBackOff"


def backoff_ms(failures: int, timing: Timing) -> int:
    """The pause before a restart, after so many ends in a row (at least 1)."""
    if failures <= 1:
        return 0
    doublings = min(failures - 2, 32)
    return min(timing.backoff_first_ms << doublings, timing.backoff_most_ms)


def runs_again(policy: RestartPolicy, ended: Ended, *, init: bool) -> bool:
    """Whether a container is restarted after this end. An unknown exit status counts as failure."""
    if policy is RestartPolicy.NEVER:
        return False
    if ended.succeeded:
        return policy is RestartPolicy.ALWAYS and not init
    return True


def after_end(
    container: ContainerState, ended: Ended, *, restart: bool, timing: Timing
) -> ContainerState:
    """The container after an attempt was over."""
    over = ContainerState(
        stage=Stage.ENDED,
        attempt=ended.attempt,
        ended=ended,
        failures=container.failures,
    )
    if not restart:
        return over
    ran_long = ended.finished_ms - ended.started_ms >= 2 * timing.backoff_most_ms
    failures = 1 if ran_long else container.failures + 1
    pause_ms = backoff_ms(failures, timing)
    return replace(
        over,
        stage=Stage.WAITING,
        failures=failures,
        not_before_ms=ended.finished_ms + pause_ms,
        waiting_reason=CRASH_LOOP if pause_ms else "",
        waiting_message=f"back-off of {pause_ms / 1000:g} s before the next start"
        if pause_ms
        else "",
    )
