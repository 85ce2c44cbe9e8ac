"""What a container finds in its environment before its manifest speaks.

A simulated container gets what a program needs to run and the simulators' own settings; a real one
gets the environment the platform was started in, as a program started by hand would. Neither sees
the platform's own settings, which hold credentials.
"""

from collections.abc import Mapping

from inferbus_node_agent.policy_containers import EngineMode

POD_ADDRESS_VARIABLE = "INFERBUS_POD_IP"
"""Stands for 0.0.0.0 and for localhost in simulated containers."""
DRAIN_VARIABLE = "INFERBUS_ENGINE_SIMULATOR_DRAIN_SECONDS"
_OWN_PREFIX = "INFERBUS_"
_NEEDED = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "INFERBUS_CLOCK_RATE"})
_PASSED_ON = ("INFERBUS_ENGINE_SIMULATOR_", "INFERBUS_ENGINE_AGENT_")


def base_environment(
    agent: Mapping[str, str], mode: EngineMode, pod_name: str, grace_real_seconds: float
) -> dict[str, str]:
    """The variables every container of a pod starts from; `agent` is the agent's environment.

    A simulated engine may use up the grace period to finish what it runs, save one second.
    """
    if mode is EngineMode.REAL:
        kept = {name: value for name, value in agent.items() if not name.startswith(_OWN_PREFIX)}
        return kept | {"HOSTNAME": pod_name}
    kept = {
        name: value
        for name, value in agent.items()
        if name in _NEEDED or name.startswith(_PASSED_ON)
    }
    drain_seconds = f"{max(grace_real_seconds - 1, 0.5):g}"
    return {DRAIN_VARIABLE: drain_seconds} | kept | {"HOSTNAME": pod_name}
