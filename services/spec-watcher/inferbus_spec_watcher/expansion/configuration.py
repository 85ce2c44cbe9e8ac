"""The platforms' own ConfigMaps: images and scheduler that an administrator chose for all.

Invariant: what a ConfigMap doesn't say comes from the settings, and what it says unreadably is told
(ruling "global configuration"; modelbooster spec 2.7).
"""

from typing import Any

import yaml

from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.expansion.conditions import Doubt
from inferbus_spec_watcher.expansion.context import Context

LLMAZ_KEY = "config.data"


def downloader_image(context: Context) -> str:
    """The image of a ModelBooster's downloader."""
    found = _data(context, context.settings.booster_configuration)
    return found.get("model_serving_downloader_image") or context.settings.downloader_image


def runtime_image(context: Context) -> str:
    """The image of a ModelBooster's sidecar."""
    found = _data(context, context.settings.booster_configuration)
    return found.get("model_serving_runtime_image") or context.settings.runtime_image


def loader_image(context: Context) -> str:
    """The image of an inference Service's model loader."""
    return _llmaz(context).get("init-container-image") or context.settings.loader_image


def scheduler_name(context: Context) -> str:
    """The scheduler of an inference Service's pods; empty for the cluster's own."""
    return _llmaz(context).get("scheduler-name") or context.settings.scheduler_name


def _llmaz(context: Context) -> dict[str, str]:
    key = context.settings.llmaz_configuration
    text = _data(context, key).get(LLMAZ_KEY, "")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = text
    if content is None:
        return {}
    if not isinstance(content, dict):
        context.doubt(
            Doubt.CONFIGURATION_UNREADABLE,
            f"{key}: data.{LLMAZ_KEY}",
            "is no mapping in YAML, so the settings of the spec-watcher count",
            "write e.g. scheduler-name: <name>",
        )
        return {}
    return _texts(content)


def _data(context: Context, key: ObjectKey) -> dict[str, str]:
    return _texts((context.find(key) or {}).get("data"))


def _texts(content: Any) -> dict[str, str]:
    pairs = content.items() if isinstance(content, dict) else ()
    return {str(name): value for name, value in pairs if isinstance(value, str)}
