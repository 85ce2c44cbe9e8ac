"""What can be wrong with a manifest: a good one of each kind, with one defect at a time.

Invariant: a defect's manifest has exactly one line marked `# here`, which is the line that the
platform must name.
"""

from dataclasses import dataclass

from tests.scenario.good_manifests import GOOD, NETWORKING

MARK = "# here"


@dataclass(frozen=True)
class Defect:
    """A good manifest with `find` replaced by `put`, and what must be said about it."""

    kind: str
    what: str
    find: str
    put: str
    """One line of it ends with `# here`."""
    code: str
    field: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        """For the names of tests."""
        return f"{self.kind}-{self.what.replace(' ', '-')}"

    @property
    def text(self) -> str:
        """The manifest."""
        good = GOOD[self.kind]
        assert self.find in good, f"{self.name}: the good manifest has no {self.find!r}"
        return good.replace(self.find, self.put, 1)

    @property
    def line(self) -> int:
        """Where it is wrong."""
        (line,) = [number for number, line in enumerate(self.text.splitlines(), 1) if MARK in line]
        return line


DEFECTS = (
    Defect(
        "ModelServing",
        "unknown field",
        "  replicas: 0",
        "  replica: 0  # here",
        "IB-1004",
        "spec.replica",
        "0",
    ),
    Defect(
        "ModelServing",
        "wrong type",
        "  replicas: 0",
        "  replicas: many  # here",
        "IB-1006",
        "spec.replicas",
        "many",
    ),
    Defect(
        "ModelServing",
        "out of range",
        "  replicas: 0",
        "  replicas: -4  # here",
        "IB-1007",
        "spec.replicas",
        "-4",
    ),
    Defect(
        "ModelServing",
        "missing field",
        "    - name: main\n      replicas: 1",
        "    - replicas: 1  # here",
        "IB-1005",
        "spec.template.roles[0].name",
    ),
    Defect(
        "ModelServing",
        "bad role name",
        "- name: main",
        "- name: 'main!'  # here",
        "IB-1007",
        "spec.template.roles[0].name",
        "main!",
    ),
    Defect(
        "ModelBooster",
        "unknown field",
        "    minReplicas: 1",
        "    minReplica: 1  # here",
        "IB-1004",
        "spec.backends[0].minReplica",
        "1",
    ),
    Defect(
        "ModelBooster",
        "unknown engine",
        "type: vLLM",
        "type: vLLLM  # here",
        "IB-1007",
        "spec.backends[0].type",
        "vLLLM",
    ),
    Defect(
        "ModelBooster",
        "bounds the wrong way round",
        "    minReplicas: 1",
        "    minReplicas: 5  # here",
        "IB-1008",
        "spec.backends[0].minReplicas",
        "5",
    ),
    Defect(
        "ModelBooster",
        "source that can't be read",
        "modelURI: hf://org/model",
        "modelURI: ftp://org/model  # here",
        "IB-1007",
        "spec.backends[0].modelURI",
        "ftp://org/model",
    ),
    Defect(
        "AutoscalingPolicy",
        "wrong type",
        "tolerancePercent: 10",
        "tolerancePercent: ['10']  # here",
        "IB-1006",
        "spec.tolerancePercent",
        "['10']",
    ),
    Defect(
        "AutoscalingPolicy",
        "unreadable quantity",
        "targetValue: 10",
        "targetValue: plenty  # here",
        "IB-1007",
        "spec.metrics[0].targetValue",
        "plenty",
    ),
    Defect(
        "AutoscalingPolicyBinding",
        "empty mix",
        "  homogeneousTarget:",
        "  heterogeneousTarget:\n    params: []  # here\n  homogeneousTarget:",
        "IB-1007",
        "spec.heterogeneousTarget.params",
        "[]",
    ),
    Defect(
        "AutoscalingPolicyBinding",
        "policy that is missing",
        "    name: bound\n  homo",
        "    name: absent  # here\n  homo",
        "IB-2002",
        "spec.policyRef.name",
        "absent",
    ),
    Defect(
        "ModelServer",
        "port out of range",
        "port: 8000",
        "port: 80000  # here",
        "IB-1007",
        "spec.workloadPort.port",
        "80000",
    ),
    Defect(
        "ModelServer",
        "unknown engine",
        "inferenceEngine: vLLM",
        "inferenceEngine: abacus  # here",
        "IB-1007",
        "spec.inferenceEngine",
        "abacus",
    ),
    Defect(
        "ModelRoute",
        "weight out of range",
        "- modelServerName: server",
        "- modelServerName: server\n      weight: 101  # here",
        "IB-1007",
        "spec.rules[0].targetModels[0].weight",
        "101",
    ),
    Defect(
        "ModelRoute",
        "two targets in one",
        "- modelServerName: server",
        "- modelServerName: server  # here\n      externalModelProviderName: cloud",
        "IB-1008",
        "spec.rules[0].targetModels[0].modelServerName",
        "server",
    ),
    Defect(
        "ModelRoute",
        "answers for nothing",
        "spec:\n  modelName: chat\n",
        "spec:  # here\n",
        "IB-1005",
        "spec.modelName",
    ),
    Defect(
        "OpenModel",
        "wrong type",
        "familyName: opt",
        "familyName: 7  # here",
        "IB-1006",
        "spec.familyName",
        "7",
    ),
    Defect(
        "OpenModel",
        "unknown hub",
        "    modelHub:",
        "    modelHub:\n      name: Attic  # here",
        "IB-1007",
        "spec.source.modelHub.name",
        "Attic",
    ),
    Defect(
        "Playground",
        "unknown field",
        "  replicas: 1",
        "  replicaCount: 1  # here",
        "IB-1004",
        "spec.replicaCount",
        "1",
    ),
    Defect(
        "Playground",
        "claims nothing",
        "spec:\n  replicas: 1\n  modelClaim:\n    modelName: opt-125m\n",
        "spec:  # here\n  replicas: 1\n",
        "IB-1005",
        "spec.modelClaim",
    ),
    Defect(
        "Service",
        "missing field",
        "spec:\n  modelClaims:\n    models:\n    - name: opt-125m\n",
        "spec:  # here\n",
        "IB-1005",
        "spec.modelClaims",
    ),
    Defect(
        "Service",
        "no container that runs the model",
        "containers:\n        - name: model-runner",
        "containers:  # here\n        - name: something",
        "IB-1005",
        "spec.workloadTemplate.workerTemplate.spec.containers",
    ),
    Defect(
        "BackendRuntime",
        "config twice",
        "  - name: default",
        "  - name: default\n  - name: default  # here",
        "IB-2001",
        "spec.recommendedConfigs[1].name",
        "default",
    ),
    Defect(
        "ModelServer",
        "unknown version",
        f"apiVersion: {NETWORKING}",
        "apiVersion: networking.serving.volcano.sh/v9  # here",
        "IB-1003",
        "apiVersion",
        "networking.serving.volcano.sh/v9",
    ),
    Defect(
        "ModelServer",
        "unknown kind",
        "kind: ModelServer",
        "kind: ModelSever  # here",
        "IB-1003",
        "kind",
        "ModelSever",
    ),
    Defect("ModelServer", "no kind", "\nkind: ModelServer\n", "  # here\n", "IB-1005", "kind"),
    Defect(
        "ModelServer",
        "name that DNS has no room for",
        "  name: server",
        "  name: My_Server  # here",
        "IB-1009",
        "metadata.name",
        "My_Server",
    ),
    Defect(
        "ModelServer",
        "key twice",
        "  inferenceEngine: vLLM",
        "  inferenceEngine: vLLM\n  inferenceEngine: SGLang  # here",
        "IB-1001",
        "",
        "inferenceEngine",
    ),
    Defect("ModelServer", "no number", "port: 8000", "port: .nan  # here", "IB-1001", "", ".nan"),
    Defect(
        "ModelServer",
        "tab",
        "  inferenceEngine: vLLM",
        "\tinferenceEngine: vLLM  # here",
        "IB-1001",
    ),
    Defect(
        "ModelServer",
        "broken flow",
        "inferenceEngine: vLLM\n  workloadSelector:",
        "inferenceEngine: [vLLM\n  workloadSelector:  # here",
        "IB-1001",
    ),
    Defect(
        "ModelServer",
        "tag of another language",
        "inferenceEngine: vLLM",
        "inferenceEngine: !!python/name:os.system x  # here",
        "IB-1001",
        "",
        "python/name",
    ),
)
