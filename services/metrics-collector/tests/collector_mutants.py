"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of autoscaling spec section 7.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "AS_D03",
        "policy_sources",
        "kind=_KINDS[self.aggregations.of(name)],",
        "kind=MetricKind.EXTERNAL_TOTAL,",
    ),
    Mutant("AS_D04", "policy_selection", "        and not pod.deleting\n", ""),
    Mutant("AS_D04", "policy_selection", "return pod.failed or", "return pod.restarts > 0 or"),
    Mutant(
        "AS_D06",
        "policy_series",
        "value=increase * 1000 / span_ms",
        "value=math.fsum(family.series.values())",
    ),
    Mutant("AS_D09", "pod_pages", "asyncio.Semaphore(concurrency)", "asyncio.Semaphore(1)"),
    Mutant("AS_D09", "pod_pages", "self._slow_line if endpoint in self._slow else ", ""),
    Mutant("AS_D10", "policy_series", "    if not _is_plausible(family):", "    if False:"),
    Mutant("AS_D10", "policy_sample", "if outcome.metric is not None else", "if not missing else"),
    Mutant("AS_D10", "policy_sample", "        elif damage := ", "        elif damage := () and "),
    Mutant(
        "AS_D15",
        "policy_aggregate",
        "total = math.fsum(value.value for",
        "total = sum(value.value for",
    ),
    Mutant(
        "AS_D16",
        "policy_aggregate",
        "value = quantile(share, merged)",
        "value = sum(quantile(share, merge_buckets([one.buckets])) or 0.0 "
        "for one in values.values() if one.buckets)",
    ),
    Mutant("AS_D16", "policy_quantile", "or buckets[-1][1] == 0", ""),
    Mutant("AS_D20", "policy_schedule", "        if now_ms < self._now_ms:", "        if False:"),
    Mutant("AS_D25", "policy_access", "    if address.is_link_local:", "    if False:"),
    Mutant("AS_D25", "policy_access", "address.is_loopback and not loopback", "False"),
    Mutant("AS_D25", "policy_targets", "if not grants.allow(", "if False and grants.allow("),
    Mutant(
        "AS_D25",
        "adapters_prometheus",
        "allow_redirects=False",
        "allow_redirects=True",
    ),
    Mutant("AS_D25", "adapters_prometheus", "            if refusal:\n", "            if False:\n"),
)
