"""Which resources of a container are accelerators.

Invariant: cpu, memory, storage and network devices never count.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from inferbus_contracts.resources.scalars import parse_quantity

VENDORS = frozenset(
    {
        "amd.com",
        "aws.amazon.com",
        "cambricon.com",
        "google.com",
        "gpu.intel.com",
        "habana.ai",
        "huawei.com",
        "hygon.com",
        "metax-tech.com",
        "mthreads.com",
        "nvidia.com",
    }
)
"""Domains under which device plugins announce accelerators."""


def is_accelerator(resource: str) -> bool:
    """Whether a resource's name is that of an accelerator, e.g. `nvidia.com/gpu`."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain in VENDORS


def accelerators(resources: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """Amounts by resource, of core/v1 ResourceRequirements; limits count before requests."""
    given = resources or {}
    amounts = {**(given.get("requests") or {}), **(given.get("limits") or {})}
    return {name: parse_quantity(amounts[name]) for name in sorted(amounts) if is_accelerator(name)}


def accelerator_count(resources: Mapping[str, Any] | None) -> int:
    """How many accelerators of all kinds together."""
    return int(sum(accelerators(resources).values(), Fraction(0)))
