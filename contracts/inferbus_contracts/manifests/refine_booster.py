"""Refinements of ModelBooster (modelbooster spec 1.1 to 1.5; ruling F14)."""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.forms import PORT
from inferbus_contracts.manifests.refinement import CelRule, Refinement, Schema, merged_by
from inferbus_contracts.manifests.structural import PRESERVE
from inferbus_contracts.resources import booster

_MAX_BACKENDS = 32
_MAX_ADAPTERS = 500
_URI_LENGTH = 1536

_VARIABLES: Schema = {
    **merged_by("name"),
    "maxItems": 1000,
    "items": {
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Name of the variable."}
        },
    },
}
_CONFIG: Schema = {
    "properties": {
        "port": {
            "description": "The port the engine serves on.",
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "minimum": 1,
            "maximum": 65535,
            "pattern": f"^{PORT}$",
        }
    },
    PRESERVE: True,
}


def _port(worker: str) -> str:
    return f"(has({worker}.config) && has({worker}.config.port) ? int({worker}.config.port) : 0)"


_FOLDERS = "self.modelURI.substring(6).split('/').filter(part, part != '' && part != '.')"
_CLAIM = "self.cacheURI.substring(6).replace('/', '')"

_BACKEND_RULES = (
    CelRule(
        "has(self.minReplicas) == has(self.maxReplicas)"
        " && (has(self.minReplicas) || has(self.replicas))",
        "give both minReplicas and maxReplicas, or replicas alone",
    ),
    CelRule(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        "minReplicas must not exceed maxReplicas",
    ),
    CelRule(
        "!(self.type in ['vLLM', 'SGLang', 'MindIE'])"
        " || (size(self.workers) == 1 && self.workers[0].type == 'server')",
        "workers: a backend of this type has exactly one worker, of type server",
    ),
    CelRule(
        "self.type != 'vLLMDisaggregated'"
        " || (self.workers.all(worker, worker.type in ['prefill', 'decode'])"
        " && self.workers.exists(worker, worker.type == 'prefill')"
        " && self.workers.exists(worker, worker.type == 'decode'))",
        "workers: a vLLMDisaggregated backend has prefill and decode workers, and no others",
    ),
    CelRule(
        "self.type != 'vLLMDisaggregated' || self.workers.all(worker,"
        f" {_port('worker')} == {_port('self.workers[0]')})",
        "workers: all need the same config.port",
    ),
    CelRule(
        "!(self.modelURI + '/').contains('/../')"
        " && !(has(self.cacheURI) && (self.cacheURI + '/').contains('/../'))",
        "modelURI and cacheURI must not contain '..'",
    ),
    CelRule(
        "!self.modelURI.startsWith('pvc://')"
        " || (has(self.cacheURI) && self.cacheURI.startsWith('pvc://'))",
        "modelURI is on a volume claim, which cacheURI must mount: pvc://<claim>",
    ),
    CelRule(
        "!self.modelURI.startsWith('pvc://')"
        " || !has(self.cacheURI) || !self.cacheURI.startsWith('pvc://')"
        f" || [{_FOLDERS}].all(folders, folders.size() > 0 && folders[0] == {_CLAIM})",
        "modelURI is not on the claim that cacheURI mounts",
    ),
)

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    booster.Worker: Refinement(fields={"image": {"pattern": r"^\S*$"}, "config": _CONFIG}),
    booster.LoraAdapter: Refinement(fields={"name": {"maxLength": 253}}),
    booster.Backend: Refinement(
        fields={
            "name": {"maxLength": 253},
            "modelURI": {"maxLength": _URI_LENGTH},
            "cacheURI": {
                "maxLength": _URI_LENGTH,
                "pattern": "^(hostpath://.+|pvc:///*[^/]+/*)$",
            },
            "env": _VARIABLES,
            "loraAdapters": {**merged_by("name"), "maxItems": _MAX_ADAPTERS},
        },
        rules=_BACKEND_RULES,
    ),
    booster.ModelBoosterSpec: Refinement(
        fields={"backends": {**merged_by("name"), "maxItems": _MAX_BACKENDS}},
        rules=(
            CelRule(
                "(has(self.backends) && size(self.backends) > 0) != has(self.backend)",
                "set one of backends and backend",
            ),
            CelRule(
                "!has(self.autoscalingPolicy)"
                " || ((!has(self.backends)"
                " || self.backends.all(backend, !has(backend.autoscalingPolicy)))"
                " && !(has(self.backend) && has(self.backend.autoscalingPolicy)))",
                "keep either autoscalingPolicy or the policies of the backends",
            ),
        ),
    ),
}


def _apart(backend: str) -> str:
    return (
        f"!has({backend}.loraAdapters)"
        f" || {backend}.loraAdapters.all(adapter, adapter.name != self.metadata.name)"
    )


RULES = (
    CelRule(
        f"(!has(self.spec.backend) || {_apart('self.spec.backend')})"
        f" && (!has(self.spec.backends) || self.spec.backends.all(backend, {_apart('backend')}))",
        "spec.backends: an adapter has the name of the model itself",
    ),
)
"""Rules of the whole object."""
