"""Where a model comes from, and which artifact that is.

Reconciler, node agent and downloader must call the same artifact by the same name, so what a model
URI means and the digest that names an artifact are defined here and nowhere else. Invariant: two
spellings of one source have one canonical URI, and with equal revision and filters one digest.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from posixpath import normpath
from typing import NoReturn
from urllib.parse import urlsplit

from inferbus_contracts.canonical import digest
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey

ARTIFACT_KIND = "Artifact"
"""The kind in the key of artifact events; the node stands where others have a namespace."""


class Scheme(StrEnum):
    """The kinds of places a model can be at."""

    HF = "hf"
    MS = "ms"
    S3 = "s3"
    OBS = "obs"
    OSS = "oss"
    GCS = "gcs"
    AZURE = "azure"
    OCI = "oci"
    OLLAMA = "ollama"
    HTTP = "http"
    HTTPS = "https"
    PVC = "pvc"
    """A folder of a claim: `pvc://<claim>/<path>`."""
    HOST = "host"
    """An absolute path of the node."""


LOCAL_SCHEMES = frozenset({Scheme.PVC, Scheme.HOST})
"""Sources that are on the node already, and are used where they are."""

_ALIASES = {"hostpath": Scheme.HOST, "file": Scheme.HOST, "gs": Scheme.GCS}
_DEFAULT_REVISIONS = {Scheme.HF: "main", Scheme.MS: "master"}
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_REPOSITORY_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_MAX_REPOSITORY_PART = 96
"""The hubs' limit for the name of an owner or a repository, characters."""


@dataclass(frozen=True, slots=True)
class ModelUri:
    """A parsed model source; `str` of it is the canonical URI."""

    scheme: Scheme
    address: str
    """What follows `<scheme>://`, normalised; an absolute path for `host`."""

    @property
    def is_local(self) -> bool:
        """Whether the model is on the node already."""
        return self.scheme in LOCAL_SCHEMES

    def __str__(self) -> str:
        return f"{self.scheme.value}://{self.address}"


def parse_model_uri(text: str) -> ModelUri:
    """The source that `text` names (modelbooster-downloader spec 4.3, llmaz spec 3.1).

    Schemes are case-insensitive; `hostpath` and `file` are other words for `host`, `gs` for `gcs`.
    Without a scheme an absolute path is `host`, anything else a repository of the Hugging Face hub.
    Raises `ProblemsError` (MODEL_SOURCE_INVALID).
    """
    if not text or _UNPRINTABLE.search(text):
        _refuse(text, "a model source is a URI without blanks or control characters")
    match = _URI.fullmatch(text)
    if match is None:
        return _without_scheme(text)
    word, address = match[1].lower(), match[2]
    scheme = _ALIASES.get(word) or _scheme(word, text)
    return ModelUri(scheme, _address(scheme, word, address, text))


def artifact_digest(
    source: ModelUri,
    revision: str | None = None,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
) -> str:
    """The name of an artifact: 32 hexadecimal digits over source, revision and filters.

    `revision` None or empty is the hub's default branch. The order and repetition of filters don't
    matter. The revision a request asks for may be a branch; the cache is keyed by this digest of
    the revision that the branch stood for.
    """
    return digest(
        {
            "source": str(source),
            "revision": revision or _DEFAULT_REVISIONS.get(source.scheme, ""),
            "include": sorted(set(include)),
            "exclude": sorted(set(exclude)),
        }
    )


def artifact_key(artifact: str, node: str) -> ObjectKey:
    """What the events about `artifact` on `node` are keyed by."""
    return ObjectKey(ARTIFACT_KIND, node, artifact)


def _without_scheme(text: str) -> ModelUri:
    if text.startswith("/"):
        return ModelUri(Scheme.HOST, _absolute(text, text))
    if text.startswith(("./", "../", "~")):
        _refuse(text, "a relative path means something else on every node; write it absolute")
    return ModelUri(Scheme.HF, _repository(text, text))


def _scheme(word: str, text: str) -> Scheme:
    try:
        return Scheme(word)
    except ValueError:
        known = ", ".join(sorted([*Scheme, *_ALIASES]))
        _refuse(text, f"scheme {word!r} is not one of {known}")


def _address(scheme: Scheme, word: str, address: str, text: str) -> str:
    match scheme:
        case Scheme.HF | Scheme.MS:
            return _repository(address, text)
        case Scheme.HOST:
            if word != "hostpath" and not address.startswith("/"):
                _refuse(text, f"write an absolute path: {word}:///…")
            return _absolute(address, text)
        case Scheme.PVC:
            return _absolute(address, text)[1:]
        case Scheme.OSS:
            return _bucket_with_endpoint(address, text)
        case Scheme.HTTP | Scheme.HTTPS:
            return _web(text)
        case _:
            return _path_below(address, text)


def _repository(address: str, text: str) -> str:
    parts = address.strip("/").split("/")
    good = 1 <= len(parts) <= 2 and all(
        _REPOSITORY_PART.fullmatch(part)
        and len(part) <= _MAX_REPOSITORY_PART
        and ".." not in part
        and "--" not in part
        for part in parts
    )
    if not good:
        _refuse(text, "a repository is <owner>/<name>; a revision is given beside it")
    return "/".join(parts)


def _absolute(address: str, text: str) -> str:
    parts = address.split("/")
    if ".." in parts:
        _refuse(text, "a path may not go up with '..'")
    path = normpath("/" + "/".join(part for part in parts if part))
    if path == "/":
        _refuse(text, "the path is missing")
    return path


def _bucket_with_endpoint(address: str, text: str) -> str:
    host, slash, path = address.partition("/")
    bucket, dot, endpoint = host.partition(".")
    if not (bucket and dot and endpoint and slash):
        _refuse(text, "write oss://<bucket>.<endpoint>/<path>")
    return f"{host}{_absolute(path, text)}"


def _web(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname:
        _refuse(text, "the host is missing")
    if parts.username or parts.password:
        _refuse(f"{parts.scheme}://…@{parts.hostname}/…", "credentials don't belong into a URI")
    return text.partition("://")[2]


def _path_below(address: str, text: str) -> str:
    path = address.strip("/")
    if not path:
        _refuse(text, "what follows the scheme is missing")
    if ".." in path.split("/"):
        _refuse(text, "a path may not go up with '..'")
    return re.sub("/+", "/", path)


def _refuse(text: str, reason: str) -> NoReturn:
    raise ProblemsError(
        Problem(
            code=ErrorCode.MODEL_SOURCE_INVALID,
            message=f"this is no model source: {reason}",
            value=text,
            remedy="e.g. hf://<owner>/<repository>, host:///<path> or pvc://<claim>/<path>",
        )
    )
