"""Where a pod's volumes lie on this machine, and how a program is shown them.

An emptyDir, ConfigMap or Secret belongs to the pod and lies in its run folder; host paths and
claims belong to the platform and outlive pods. A real program sees them at its mount paths by bind
mounts in a mount namespace of its own; a simulated one reads no files, so it gets none.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent.pod_parts import KeyToPath, Volume
from inferbus_node_agent.pods import Container, Pod
from inferbus_node_agent.policy_environment import SourceKind, SourceName, Sources

_SHARED_MEMORY = "/dev/shm"
"""Every process of the machine has it already."""


def volume_directory(pod: Pod, volume: Volume, pod_folder: Path, platform_folder: Path) -> Path:
    """The directory behind a volume; `pod_folder` is removed with the pod."""
    if volume.host_path is not None:
        relative = os.path.normpath(f"/{volume.host_path.path}").lstrip("/")
        return platform_folder / "host" / relative
    if volume.persistent_volume_claim is not None:
        claim = PurePosixPath(volume.persistent_volume_claim.claim_name).name
        return platform_folder / "claims" / pod.metadata.namespace / claim
    return pod_folder / "volumes" / volume.name


def sources_of_volumes(pod: Pod) -> set[SourceName]:
    """The ConfigMaps and Secrets that volumes show."""
    return {source for volume in pod.spec.volumes for source, _, _ in _source(volume)}


def volume_files(pod: Pod, volume: Volume, sources: Sources) -> dict[str, bytes]:
    """Relative path → content of the files of a ConfigMap or Secret volume; else nothing.

    Raises `ProblemsError` (MISSING_REFERENCE) for an object or key that isn't there and isn't
    optional, (BAD_NAME) for a path that leads out of the volume.
    """
    files: dict[str, bytes] = {}
    for source, items, optional in _source(volume):
        content = sources.get(source)
        if content is None:
            if optional:
                continue
            raise _missing(pod, volume, f"there is no {source.kind.value} {source.name!r}")
        wanted = {item.path: item.key for item in items} or {key: key for key in content}
        for path, key in wanted.items():
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise _escaping(pod, volume, path)
            if key in content:
                files[path] = content[key]
            elif not optional:
                raise _missing(pod, volume, f"{source.kind.value} {source.name!r} has no {key!r}")
    return files


def mounted(
    argv: Sequence[str], container: Container, directories: Mapping[str, Path], *, root: bool
) -> tuple[str, ...]:
    """`argv` behind a mount namespace in which the container's mounts are bound.

    Mount paths that don't exist are created, and stay. Without `root` a user namespace gives the
    right to mount, where the machine allows that.
    """
    steps: list[str] = []
    for mount in container.volume_mounts:
        directory = directories.get(mount.name)
        if directory is None or mount.mount_path == _SHARED_MEMORY:
            continue
        source = str(directory / mount.sub_path.lstrip("/"))
        if source != mount.mount_path:
            quoted = shlex.quote(source), shlex.quote(mount.mount_path)
            steps.append("mkdir -p {0} {1} && mount --bind {0} {1}".format(*quoted))
    if not steps:
        return tuple(argv)
    rights = () if root else ("--map-root-user",)
    script = " && ".join([*steps, 'exec "$@"'])
    return ("unshare", *rights, "--mount", "--", "sh", "-c", script, "sh", *argv)


def _source(volume: Volume) -> Iterator[tuple[SourceName, tuple[KeyToPath, ...], bool]]:
    if volume.config_map is not None:
        name = SourceName(SourceKind.CONFIG_MAP, volume.config_map.name)
        yield name, volume.config_map.items, volume.config_map.optional
    if volume.secret is not None:
        name = SourceName(SourceKind.SECRET, volume.secret.secret_name)
        yield name, volume.secret.items, volume.secret.optional


def _missing(pod: Pod, volume: Volume, message: str) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.MISSING_REFERENCE,
            message=message,
            object=pod.key,
            field=f"spec.volumes[{volume.name}]",
            remedy="apply it, or mark the volume optional",
        )
    )


def _escaping(pod: Pod, volume: Volume, path: str) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.BAD_NAME,
            message="a file of a volume must lie inside it",
            object=pod.key,
            field=f"spec.volumes[{volume.name}].items",
            value=path,
            remedy="give a relative path without '..'",
        )
    )
