"""Refinements of llmaz's kinds (llmaz spec 1.1 to 1.6; rulings F9 to F12)."""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.pod_specs import pod_spec
from inferbus_contracts.manifests.refinement import CelRule, Refinement, Schema, merged_by
from inferbus_contracts.manifests.structural import PRESERVE
from inferbus_contracts.resources import backend_runtime, inference, open_model

LABEL: Schema = {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
"""A DNS label: what an OpenModel can be called."""
_LABEL_VALUE: Schema = {
    "maxLength": 63,
    "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
}
_MAX_MODELS = 100
_ANY = r"[^\x00-\x20\x7f]*"
_SOME = r"[^/\x00-\x20\x7f]"
"""A character that isn't a slash; URIs hold no blanks and no control characters."""
_PLACES = (
    rf"(?i:oss)://[^./\x00-\x20\x7f]+[.]{_SOME}+/+{_SOME}{_ANY}",
    rf"(?i:s3|gcs|gs):///*{_SOME}+/+{_SOME}{_ANY}",
    rf"(?i:host|file):///{_ANY}{_SOME}{_ANY}",
    rf"(?i:ollama|hostpath)://{_ANY}{_SOME}{_ANY}",
)
_URI = f"^({'|'.join(_PLACES)})$"

_DRAFTS = "self.models.filter(model, model.role == 'draft').size()"
_DRAFT_HAS_MAIN = CelRule(
    f"{_DRAFTS} == 0 || (size(self.models) == 2 && {_DRAFTS} == 1)",
    "models: a draft model needs exactly one main model beside it",
)
_ONE_MAIN = CelRule(
    "!has(self.modelClaims) || size(self.modelClaims.models) < 2"
    " || self.modelClaims.models.exists(model, model.role == 'draft')",
    "modelClaims.models: several models have the role main",
)

_POD_TEMPLATE: Schema = {PRESERVE: True, "properties": {"spec": pod_spec()}}
_RUNNER_TEMPLATE: Schema = {
    **_POD_TEMPLATE,
    "required": ["spec"],
    "properties": {"spec": {**pod_spec(minItems=1), "required": ["containers"]}},
    "x-kubernetes-validations": [
        CelRule(
            "self.spec.containers.exists(container, container.name == 'model-runner')",
            "spec.containers: no container is called model-runner",
        ).as_validation()
    ],
}

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    open_model.ModelHub: Refinement(
        fields={"modelID": {"minLength": 1}},
        required=("modelID",),
        rules=(
            CelRule(
                "!has(self.filename) || !(has(self.allowPatterns) || has(self.ignorePatterns))",
                "filename can't be used together with allowPatterns and ignorePatterns",
            ),
            CelRule(
                "!has(self.filename) || self.name != 'ModelScope'",
                "filename: ModelScope models can't be loaded by file name",
            ),
        ),
    ),
    open_model.ModelSource: Refinement(
        fields={
            "uri": {
                "maxLength": 2048,
                "pattern": _URI,
                "x-kubernetes-validations": [
                    CelRule(
                        "self.indexOf('://') == self.lastIndexOf('://')",
                        "should be <scheme>://<address> with exactly one ://",
                    ).as_validation(),
                    CelRule(
                        "!(self + '/').contains('/../')", "a path may not go up with '..'"
                    ).as_validation(),
                ],
            }
        },
        rules=(
            CelRule(
                "has(self.modelHub) || has(self.uri)",
                "modelHub or uri must say where the model can be loaded from",
            ),
        ),
    ),
    open_model.Flavor: Refinement(fields={"name": {"maxLength": 253}}),
    open_model.InferenceConfig: Refinement(
        fields={
            "flavors": {
                "x-kubernetes-validations": [
                    CelRule(
                        "self.all(a, self.exists_one(b, a.name == b.name))",
                        "names of flavors must differ",
                    ).as_validation()
                ]
            }
        }
    ),
    open_model.OpenModelSpec: Refinement(
        fields={"familyName": _LABEL_VALUE, "createdAt": {"format": "date-time"}}
    ),
    inference.ModelRef: Refinement(fields={"name": LABEL}),
    inference.ModelClaim: Refinement(fields={"modelName": LABEL}),
    inference.ModelClaims: Refinement(
        fields={"models": {"maxItems": _MAX_MODELS}}, rules=(_DRAFT_HAS_MAIN,)
    ),
    inference.ElasticConfig: Refinement(
        fields={"minReplicas": {"minimum": 1}, "scaleTrigger": {"required": ["hpa"]}},
        rules=(
            CelRule(
                "!has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                "minReplicas must not exceed maxReplicas",
            ),
        ),
    ),
    inference.PlaygroundSpec: Refinement(
        rules=(
            CelRule(
                "has(self.modelClaim) != has(self.modelClaims)",
                "set one of modelClaim and modelClaims",
            ),
            _ONE_MAIN,
        )
    ),
    inference.InferenceServiceSpec: Refinement(
        fields={"rolloutStrategy": {"default": inference.GroupRolloutStrategy().to_dict()}}
    ),
    inference.GroupRolloutStrategy: Refinement(
        fields={"rollingUpdateConfiguration": {"default": inference.GroupRollingUpdate().to_dict()}}
    ),
    inference.WorkloadTemplate: Refinement(
        fields={"leaderTemplate": _POD_TEMPLATE, "workerTemplate": _RUNNER_TEMPLATE}
    ),
    backend_runtime.BackendRuntimeSpec: Refinement(
        fields={"recommendedConfigs": merged_by("name")}
    ),
}

NAME_IS_LABEL = CelRule(
    "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
    "metadata.name: should be at most 63 lower-case letters, digits and hyphens",
)
"""Names of llmaz's kinds go into labels and names of pods."""
