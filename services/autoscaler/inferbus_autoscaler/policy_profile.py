"""How strong the accelerators of one replica are, where its pods name them.

Decoding reads all weights and the cache for every step, so the rate of tokens follows the memory
bandwidth (Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 2). Only the
relation between two targets of a mix is used. Invariant: a replica of which any pod with an
accelerator doesn't name it has no profile; nothing is guessed.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from inferbus_contracts.replica_pods import pod_amounts, replica_pods

GPU = "nvidia.com/gpu"

PRODUCT_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")
"""Node labels that name a product: of NVIDIA's GPU feature discovery, and of GKE."""

SIMULATED = "INFERBUS_ENGINE_SIMULATOR_ACCELERATOR"
"""The engine-simulator's variable: which accelerator a simulated engine stands for."""

_GB_PER_SECOND = {
    "T4": 320,
    "L4": 300,
    "A10": 600,
    "A10G": 600,
    "L40S": 864,
    "V100": 900,
    "A100-40": 1555,
    "A100-80-PCIE": 1935,
    "A100-80-SXM": 2039,
    "H100-PCIE": 2000,
    "H100-SXM": 3350,
    "H200": 4800,
    "B200": 8000,
}
"""Memory bandwidth by the makers' datasheets."""

_NAMES = {
    "Tesla-T4": "T4",
    "NVIDIA-L4": "L4",
    "NVIDIA-A10": "A10",
    "NVIDIA-A10G": "A10G",
    "NVIDIA-L40S": "L40S",
    "Tesla-V100-SXM2-16GB": "V100",
    "Tesla-V100-SXM2-32GB": "V100",
    "NVIDIA-A100-PCIE-40GB": "A100-40",
    "NVIDIA-A100-SXM4-40GB": "A100-40",
    "NVIDIA-A100-80GB-PCIe": "A100-80-PCIE",
    "NVIDIA-A100-SXM4-80GB": "A100-80-SXM",
    "NVIDIA-H100-PCIe": "H100-PCIE",
    "NVIDIA-H100-80GB-HBM3": "H100-SXM",
    "NVIDIA-H200": "H200",
    "NVIDIA-B200": "B200",
    "nvidia-tesla-t4": "T4",
    "nvidia-l4": "L4",
    "nvidia-tesla-v100": "V100",
    "nvidia-tesla-a100": "A100-40",
    "nvidia-a100-80gb": "A100-80-SXM",
    "nvidia-h100-80gb": "H100-SXM",
    "nvidia-h100-mega-80gb": "H100-SXM",
    "nvidia-h200-141gb": "H200",
    "nvidia-b200": "B200",
    "t4": "T4",
    "l4": "L4",
    "a10": "A10",
    "l40s": "L40S",
    "a100-80g": "A100-80-SXM",
    "h100": "H100-SXM",
    "h200": "H200",
}
"""As the labels say it, and the engine-simulator's presets."""


def profiles(document: Mapping[str, Any]) -> dict[str, Fraction]:
    """The profiles of a stored workload and of its roles; "" stands for the workload itself."""
    roles = ((document.get("spec") or {}).get("template") or {}).get("roles") or ()
    names = ["", *(str(role["name"]) for role in roles)]
    return {name: rate for name in names if (rate := profile(document, name)) is not None}


def profile(document: Mapping[str, Any], role: str = "") -> Fraction | None:
    """The memory bandwidth of one replica in GB/s; None where its pods don't tell.

    `document` is a stored workload, `role` the role of it that is scaled.
    """
    total = Fraction()
    for pods in replica_pods(document, role):
        devices = pod_amounts(pods.spec).get(GPU, Fraction())
        product = _product(pods.spec)
        if product is None and devices:
            return None
        if product is not None:
            total += pods.count * (devices or 1) * _GB_PER_SECOND[product]
    return total or None


def _product(spec: Mapping[str, Any]) -> str | None:
    selector = spec.get("nodeSelector") or {}
    named = [selector.get(label) for label in PRODUCT_LABELS]
    named += [
        variable.get("value")
        for container in spec.get("containers") or ()
        for variable in container.get("env") or ()
        if variable.get("name") == SIMULATED
    ]
    return next((_NAMES[name] for name in named if name in _NAMES), None)
