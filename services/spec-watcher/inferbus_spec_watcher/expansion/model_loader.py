"""Putting claimed models into a pod: loaders, volumes and credentials.

Invariant: a template keeps everything its author wrote; what is there already under one of our
names stays, and nothing is added twice (llmaz spec 3.3; defects LZ_S1, LZ_S2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.artifacts import Scheme
from inferbus_contracts.resources.inference import MODEL_RUNNER
from inferbus_spec_watcher.expansion.environment import from_secret, literal, without_repeats
from inferbus_spec_watcher.expansion.manifests import present
from inferbus_spec_watcher.expansion.model_sources import MODELS_FOLDER, ClaimedModel

VOLUME = "model-volume"
LOADER = "model-loader"
UNLOADED_BY_REFERENCE = frozenset({Scheme.S3, Scheme.GCS})
"""Sources that llmaz's loader is never told about (defect LZ_S3)."""

_HUB_SECRET = "modelhub-secret"
_TOKEN = "HF_TOKEN"
_CREDENTIALS: Mapping[Scheme, tuple[str, tuple[str, ...]]] = {
    Scheme.OSS: ("oss-access-secret", ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET")),
    Scheme.S3: ("aws-access-secret", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
    Scheme.GCS: ("aws-access-secret", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
}
"""Secret and keys by kind of source."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How models get into pods."""

    models: Sequence[ClaimedModel]
    skips_loader: bool
    image: str
    takes_arguments: bool

    @property
    def loaded(self) -> list[ClaimedModel]:
        """The models that a loader fetches."""
        return [] if self.skips_loader else [one for one in self.models if one.loaded]


def with_models(pod_spec: Mapping[str, Any], loading: Loading) -> dict[str, Any]:
    """A copy of a pod's spec in which `model-runner` finds the models."""
    spec = dict(pod_spec)
    containers = [dict(container) for container in spec.get("containers") or ()]
    if loading.loaded:
        own = (containers[0].get("env") or ()) if containers else ()
        loaders = [_loader(one, loading, own) for one in loading.loaded]
        spec["initContainers"] = _with_named(spec.get("initContainers"), loaders)
    spec |= present(volumes=_with_named(spec.get("volumes"), _volumes(loading)))
    spec["containers"] = [
        _runner(container, loading) if container.get("name") == MODEL_RUNNER else container
        for container in containers
    ]
    return spec


def _runner(container: Mapping[str, Any], loading: Loading) -> dict[str, Any]:
    mounts = list(container.get("volumeMounts") or ())
    taken = {mount.get("mountPath", "").rstrip("/") for mount in mounts}
    mounts += [one for one in _mounts(loading) if one["mountPath"].rstrip("/") not in taken]
    variables = list(container.get("env") or ())
    if loading.skips_loader:
        variables = without_repeats(variables, *map(_credentials, loading.models))
    return {**container, **present(env=variables, volumeMounts=mounts)}


def _host_models(loading: Loading) -> dict[str, str]:
    """Volume of each path of the node; the first is called like the loaders' volume where that one
    isn't used."""
    paths = [one.host_path for one in loading.models if one.host_path is not None]
    first = 1 if loading.loaded else 0
    distinct = enumerate(dict.fromkeys(paths), start=first)
    return {path: f"{VOLUME}-{index}" if index else VOLUME for index, path in distinct}


def _volumes(loading: Loading) -> list[dict[str, Any]]:
    shared = [{"name": VOLUME, "emptyDir": {}}] if loading.loaded else []
    hosts = [
        {"name": name, "hostPath": {"path": path}} for path, name in _host_models(loading).items()
    ]
    return [*shared, *hosts]


def _mounts(loading: Loading) -> list[dict[str, Any]]:
    shared = [_models_mount()] if loading.loaded else []
    hosts = [{"name": name, "mountPath": path} for path, name in _host_models(loading).items()]
    return [{**mount, "readOnly": True} for mount in (*shared, *hosts)]


def _models_mount() -> dict[str, Any]:
    return {"name": VOLUME, "mountPath": f"{MODELS_FOLDER}/"}


def _loader(
    one: ClaimedModel, loading: Loading, own: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Its view of the volume begins at the model's own subfolder, where it has one."""
    return present(
        name=f"{LOADER}-{one.index}" if one.index else LOADER,
        image=loading.image,
        args=_arguments(one) if loading.takes_arguments else [],
        env=without_repeats(own, _told(one), _credentials(one)),
        volumeMounts=[{**_models_mount(), **present(subPath=one.subfolder or None)}],
    )


def _arguments(one: ClaimedModel) -> list[str]:
    """What Inferbus' own loader is told."""
    hub = one.hub
    include = [one.file] if one.file is not None else (hub and hub.allow_patterns) or []
    exclude = (hub and hub.ignore_patterns) or []
    revision = ["--revision", hub.revision] if hub is not None and hub.revision else []
    return [
        *("--source", f"{one.scheme.value}://{one.address}"),
        *("--output-dir", f"{MODELS_FOLDER}/{one.folder}".rstrip("/")),
        *revision,
        *(word for pattern in include for word in ("--include", pattern)),
        *(word for pattern in exclude for word in ("--exclude", pattern)),
    ]


def _told(one: ClaimedModel) -> list[dict[str, Any]]:
    """What llmaz's loader reads (llmaz spec 3.3)."""
    if one.hub is None:
        return _store(one)
    optional = {
        "MODEL_FILENAME": one.hub.filename,
        "REVISION": one.hub.revision,
        "MODEL_ALLOW_PATTERNS": ",".join(one.hub.allow_patterns or ()),
        "MODEL_IGNORE_PATTERNS": ",".join(one.hub.ignore_patterns or ()),
    }
    return [
        literal("MODEL_SOURCE_TYPE", "modelhub"),
        literal("MODEL_ID", one.hub.model_id or ""),
        literal("MODEL_HUB_NAME", one.hub.name.value),
        *(literal(name, value) for name, value in optional.items() if value),
    ]


def _store(one: ClaimedModel) -> list[dict[str, Any]]:
    host, _, path = one.address.partition("/")
    bucket, _, endpoint = host.partition(".") if one.scheme is Scheme.OSS else (host, "", "")
    return [
        literal("MODEL_SOURCE_TYPE", "objstore"),
        literal("PROVIDER", one.scheme.value.upper()),
        *([literal("ENDPOINT", endpoint)] if endpoint else []),
        literal("BUCKET", bucket),
        literal("MODEL_PATH", path),
    ]


def _credentials(one: ClaimedModel) -> list[dict[str, Any]]:
    if one.hub is not None:
        return [
            from_secret("HUGGING_FACE_HUB_TOKEN", _HUB_SECRET, _TOKEN),
            from_secret(_TOKEN, _HUB_SECRET, _TOKEN),
        ]
    secret, keys = _CREDENTIALS.get(one.scheme, ("", ()))
    return [from_secret(key, secret, key) for key in keys]


def _with_named(
    items: Sequence[Mapping[str, Any]] | None, added: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """`items`, and of `added` what has a name that isn't there yet."""
    return without_repeats(items or (), added)
