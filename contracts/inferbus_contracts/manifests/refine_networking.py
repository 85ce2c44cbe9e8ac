"""Refinements of ModelRoute, ModelServer and ExternalModelProvider (routing spec 1.1 to 1.3).

A pattern that doesn't compile and weights that sum to 0 make one rule inactive and are accepted.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.admission.rules_provider import RESERVED_HEADERS
from inferbus_contracts.manifests.forms import PORT
from inferbus_contracts.manifests.refinement import CelRule, Refinement
from inferbus_contracts.resources import external_provider, networking

_NAME_LENGTH = 253
_MODEL_LENGTH = 1024
_MAX_HEADERS = 256
_ADDRESS = rf"^https://(\[[0-9A-Fa-f:.]+\]|[^\[\]/?#@:]+)(:({PORT})?)?(/[^?#]*)?\??#?$"
_RESERVED = ", ".join(f"'{name}'" for name in sorted(RESERVED_HEADERS))

_MODEL_NAME_STAYS = CelRule(
    "!has(oldSelf.modelName) || oldSelf.modelName == ''"
    " || (has(self.modelName) && self.modelName == oldSelf.modelName)",
    "modelName can't be changed once it is set; make a new ModelRoute for the other name",
)

REFINEMENTS: Mapping[type[BaseModel], Refinement] = {
    networking.TargetModel: Refinement(
        fields={
            "modelServerName": {"maxLength": _NAME_LENGTH},
            "externalModelProviderName": {"maxLength": _NAME_LENGTH},
        },
        rules=(
            CelRule(
                "(has(self.modelServerName) && self.modelServerName != '')"
                " != (has(self.externalModelProviderName) && self.externalModelProviderName != '')",
                "set one of modelServerName and externalModelProviderName",
            ),
        ),
    ),
    networking.ModelRouteSpec: Refinement(
        fields={
            "modelName": {"maxLength": _MODEL_LENGTH},
            "loraAdapters": {"items": {"minLength": 1}},
        },
        rules=(
            CelRule(
                "(has(self.modelName) && self.modelName != '')"
                " || (has(self.loraAdapters) && size(self.loraAdapters) > 0)",
                "modelName or loraAdapters must say what the route answers for",
            ),
            CelRule(
                "!has(self.loraAdapters) || size(self.loraAdapters) == 0"
                " || self.rules.all(rule, rule.targetModels.all(target,"
                " !has(target.externalModelProviderName)"
                " || target.externalModelProviderName == ''))",
                "rules: a route with loraAdapters must target modelServerName",
            ),
            _MODEL_NAME_STAYS,
        ),
    ),
    external_provider.SecretKeyReference: Refinement(
        fields={"name": {"minLength": 1}, "key": {"minLength": 1}},
        required=("name",),
        rules=(CelRule("!has(self.optional) || !self.optional", "a credential can't be optional"),),
        atomic=True,
    ),
    external_provider.ExternalModelProviderSpec: Refinement(
        fields={
            "baseURL": {"pattern": _ADDRESS, "maxLength": 4096},
            "headers": {
                "maxProperties": _MAX_HEADERS,
                "additionalProperties": {"pattern": r"^[^\r\n]*$"},
                "x-kubernetes-validations": [
                    CelRule(
                        "self.all(name, name.matches('^[!#$%&\\'*+.^_`|~0-9A-Za-z-]+$'))",
                        "the name of a header has letters, digits and !#$%&'*+.^_`|~- only",
                    ).as_validation(),
                    CelRule(
                        f"self.all(name, !(name.lowerAscii() in [{_RESERVED}]))",
                        "the router sets this header itself",
                    ).as_validation(),
                ],
            },
        }
    ),
}
