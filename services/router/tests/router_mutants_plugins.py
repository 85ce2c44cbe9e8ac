"""One-line mutants of plugins, configuration and what operators see: each brings back a defect.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_05",
        "errors",
        '        503,\n        "no_schedulable_endpoint",',
        '        400,\n        "no_schedulable_endpoint",',
    ),
    Mutant(
        "RT_09",
        "scheduling",
        '_READ_METRICS = frozenset({"gpu-usage",',
        '_READ_METRICS = frozenset({"gpu-usage", "kvcache-aware",',
    ),
    Mutant(
        "RT_10", "policy_plugins_cache", "hashlib.sha256(link + tokens", "hashlib.sha256(tokens"
    ),
    Mutant(
        "RT_10",
        "policy_plugins_cache",
        "range(block_bytes, len(tokens) + 1, block_bytes)",
        "range(block_bytes, len(tokens) + block_bytes, block_bytes)",
    ),
    Mutant("RT_10", "policy_plugins_cache", '(orjson.dumps(tools) if tools else b"") + ', ""),
    Mutant("RT_11", "scheduler", "plan.destination.upstream_model, body", "self._model, body"),
    Mutant("RT_12", "policy_pipeline", "if total == highest]", "if total == highest > 0]"),
    Mutant(
        "RT_15",
        "engine_polling",
        "                    self.readings.pop(endpoint, None)\n",
        "                    pass\n",
    ),
    Mutant(
        "RT_15",
        "policy_engine_page",
        "(values := _gauge(page, _WAITING)) else None",
        "(values := _gauge(page, _WAITING)) else 0.0",
    ),
    Mutant("RT_16", "metrics_endpoints", "int(bool(health.ejected_until_ms))", "0"),
    Mutant("RT_36", "configuration_file", "if content == self._seen:", "if self._seen:"),
    Mutant("RT_36", "configuration_file", "            self.failures += 1\n", ""),
    Mutant("RT_36", "policy_router_configuration", 'extra="forbid"', 'extra="ignore"'),
    Mutant("RT_36", "reference_environment", "        if value is None:\n", "        if False:\n"),
    Mutant("RT_38", "policy_ejection", "        self.successes += 1\n", ""),
    Mutant("RT_38", "access_log", '        ("error_origin", record.error_origin),\n', ""),
    Mutant("RT_38", "upstream_request", " if trace is None else trace.forwarded", ""),
)
