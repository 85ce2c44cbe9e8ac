"""The table of rules of ModelBooster (modelbooster spec 1.5; MB numbers are that table's rows)."""

from collections.abc import Iterator

from inferbus_contracts.admission import rules_booster_scaling as scaling
from inferbus_contracts.admission import rules_workers as workers
from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding, Rule, error, warning
from inferbus_contracts.admission.uris import claim_of, has_parent_segment, is_within_claim
from inferbus_contracts.artifacts import parse_model_uri
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.resources.booster import Backend, ModelBooster, Worker
from inferbus_contracts.resources.names import LABEL_LENGTH

PVC = "pvc://"

SINGLE_ROLE = "leader"
"""The role of a backend whose prefill and decode aren't apart (modelbooster spec 2.9)."""


def has_backends(resource: ModelBooster) -> Iterator[Finding]:
    """Either v0.1.0's list or v0.2.0's single backend."""
    if not resource.spec.backends and resource.spec.backend is None:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field="spec.backends",
            message="nothing says how the model is served",
            remedy="add at least one backend",
        )
    if resource.spec.backends and resource.spec.backend is not None:
        yield Finding(
            field="spec.backend",
            message="there are spec.backends too",
            remedy="keep one of the two",
        )


def backend_names_distinct(resource: ModelBooster) -> Iterator[Finding]:
    """A backend's name identifies it."""
    named = ((f"{path}.name", backend.name) for path, backend in backends_of(resource))
    return repeated_names(named, "backend")


def variables_distinct(resource: ModelBooster) -> Iterator[Finding]:
    """An environment variable has a name, and one value."""
    for path, backend in backends_of(resource):
        named = []
        for index, variable in enumerate(backend.env):
            field, name = f"{path}.env[{index}].name", variable.get("name")
            if isinstance(name, str) and name:
                named.append((field, name))
            else:
                yield Finding(
                    code=ErrorCode.MISSING_FIELD,
                    field=field,
                    message="a variable needs a name",
                    remedy="add name, a string",
                )
        yield from repeated_names(named, "variable")


def derived_names_fit(resource: ModelBooster) -> Iterator[Finding]:
    """Pods are named booster-backend-group-role-replica-index, which has to be a DNS label."""
    for path, backend in backends_of(resource):
        longest = max((_pod_name(resource, backend, worker) for worker in backend.workers), key=len)
        if len(longest) > LABEL_LENGTH:
            yield Finding(
                code=ErrorCode.BAD_NAME,
                field=f"{path}.name",
                message=f"pods would get names of {len(longest)} characters, {LABEL_LENGTH} are "
                "possible; the name of the backend's ModelServing is shortened",
                value=longest,
                remedy="shorten the name of the booster or of the backend",
            )


def _pod_name(resource: ModelBooster, backend: Backend, worker: Worker) -> str:
    role = worker.type.value if backend.type.disaggregated else SINGLE_ROLE
    counts = (worker.effective_replicas, worker.effective_pods)
    group = f"{resource.metadata.name}-{backend.name}-{backend.bounds[1]}"
    return f"{group}-{role}-{counts[0]}-{counts[1]}"


def lora_names_distinct(resource: ModelBooster) -> Iterator[Finding]:
    """Clients name adapters and the model in the same place (MB-11)."""
    for path, backend in backends_of(resource):
        named = [
            (f"{path}.loraAdapters[{index}].name", adapter.name)
            for index, adapter in enumerate(backend.lora_adapters)
        ]
        yield from repeated_names(named, "adapter of the backend")
        for field, name in named:
            if name == resource.metadata.name:
                yield Finding(
                    code=ErrorCode.DUPLICATE_NAME,
                    field=field,
                    message="is the name of the model itself",
                    value=name,
                    remedy="give the adapter another name",
                )


def paths_stay_inside(resource: ModelBooster) -> Iterator[Finding]:
    """No location climbs out of where it begins (MB-13)."""
    for path, backend in backends_of(resource):
        located = {"modelURI": backend.model_uri, "cacheURI": backend.cache_uri}
        for field, uri in located.items():
            if uri is not None and has_parent_segment(uri):
                yield Finding(
                    field=child(path, field),
                    message="must not contain '..'",
                    value=uri,
                    remedy="write the path without '..'",
                )


def sources_readable(resource: ModelBooster) -> Iterator[Finding]:
    """What the downloader will make of the locations of models and adapters."""
    for path, backend in backends_of(resource):
        located = {f"{path}.modelURI": backend.model_uri} | {
            f"{path}.loraAdapters[{index}].artifactURL": adapter.artifact_url
            for index, adapter in enumerate(backend.lora_adapters)
        }
        for field, uri in located.items():
            try:
                parse_model_uri(uri)
            except ProblemsError as error:
                (problem,) = error.problems
                yield Finding(
                    code=problem.code,
                    field=field,
                    message=problem.message,
                    value=uri,
                    remedy=problem.remedy,
                )


def claims_usable(resource: ModelBooster) -> Iterator[Finding]:
    """A volume claim has a plain name, and a model on a claim lies on the one that is mounted."""
    for path, backend in backends_of(resource):
        claim = claim_of(backend.cache_uri)
        if claim is not None and (not claim or "/" in claim):
            yield Finding(
                field=f"{path}.cacheURI",
                message="should name a volume claim and nothing else",
                value=backend.cache_uri,
                remedy="write pvc://<claim>",
            )
        elif backend.model_uri.startswith(PVC) and not claim:
            yield Finding(
                field=f"{path}.modelURI",
                message="the model is on a volume claim that isn't mounted",
                value=backend.model_uri,
                remedy="set cacheURI to pvc://<claim>",
            )
        elif claim and not is_within_claim(backend.model_uri, claim):
            yield Finding(
                field=f"{path}.modelURI",
                message=f"is not on the claim {claim!r} that cacheURI mounts",
                value=backend.model_uri,
                remedy=f"begin it with pvc://{claim}/",
            )


RULES: tuple[Rule, ...] = (
    error("MB-0", "modelbooster 1.1", "there is nothing to serve with", has_backends),
    error("MB-NAMES", "modelbooster 1.1", "a name identifies a backend", backend_names_distinct),
    error("MB-ENV", "modelbooster 1.2", "v0.1.0's schema refuses it", variables_distinct),
    warning("MB-LENGTH", "modelbooster 2.1", "a shipped example has it", derived_names_fit),
    error("MB-11", "modelbooster 1.5 (11)", "no request could reach it", lora_names_distinct),
    error("MB-13a", "modelbooster 1.5 (13)", "it leaves the volume", paths_stay_inside),
    warning("MB-URI", "modelbooster 4.3", "v0.1.0's schema accepts it", sources_readable),
    error("MB-13b", "modelbooster 1.5 (13)", "the files would not be there", claims_usable),
    *scaling.RULES,
    *workers.RULES,
)
