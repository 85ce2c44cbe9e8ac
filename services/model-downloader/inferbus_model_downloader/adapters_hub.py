"""Models of the Hugging Face hub, or of a mirror that speaks its interface.

The official client resolves revisions, lists files and knows the hub's headers and errors. It does
not fetch the bytes: it reads a file over one connection, checks no checksum of what it wrote, and
after a kill starts the file again or hands it to a transfer library with a cache of its own.
Invariant: the files of a snapshot are addressed by commit, so a branch that moves meanwhile changes
nothing.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import HfApi, get_hf_file_metadata, get_token, hf_hub_url
from huggingface_hub.errors import (
    FileMetadataError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoSibling

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.adapters_http import (
    RangedReader,
    RefusedError,
    open_session,
    refused,
)
from inferbus_model_downloader.policy_files import Algorithm, Checksum, Snapshot, SourceFile
from inferbus_model_downloader.policy_options import HubOptions
from inferbus_model_downloader.policy_redaction import redacted
from inferbus_model_downloader.policy_retry import asked_wait_ms, is_transient
from inferbus_model_downloader.policy_spans import Span
from inferbus_model_downloader.ports import TransientError
from inferbus_shared.clock import real_now_ms

P = ParamSpec("P")
T = TypeVar("T")

_LIBRARY = "inferbus"
_CALL_SECONDS = 30.0
_MAX_LISTED_FILES = 50_000
"""From here on the hub cuts the listing of a repository short."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


class HubSource:
    """One repository of a hub."""

    def __init__(
        self, repository: str, options: HubOptions, connections: int, stall_seconds: float
    ) -> None:
        """Must be made inside a running event loop."""
        self._repository = repository
        self._options = options
        self._api = HfApi(endpoint=options.endpoint, token=options.token, library_name=_LIBRARY)
        self._session = open_session(connections, stall_seconds)
        self._token: str | None = None
        self._locations: dict[str, str] = {}
        """Where the hub redirected a file to, while that address is accepted."""

    async def resolve(self, revision: str | None) -> Snapshot:
        """The commit that `revision` stands for, and its files with their checksums."""
        self._token = await self._ask(_token, self._options)
        info = await self._ask(
            self._api.model_info,
            self._repository,
            revision=revision or self._options.revision,
            timeout=_CALL_SECONDS,
            files_metadata=True,
        )
        listed = info.siblings or []
        if not info.sha or len(listed) >= _MAX_LISTED_FILES:
            raise ProblemsError(self._unusable(len(listed)))
        return Snapshot(info.sha, tuple([await self._described(item, info.sha) for item in listed]))

    async def read(
        self, snapshot: Snapshot, file: SourceFile, span: Span
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a span, from where the hub sent earlier ones or else through the hub."""
        reader = RangedReader(self._session, file.path, file.size_bytes)
        location = self._locations.get(file.path)
        if location:
            try:
                async with aclosing(reader.read(location, {}, span)) as parts:
                    async for part in parts:
                        yield part
                return
            except RefusedError:
                # Signed addresses expire within the hour; the hub gives a new one.
                self._locations.pop(file.path, None)
        address = self._address(file.path, snapshot.revision)
        async with aclosing(reader.read(address, self._headers(), span)) as parts:
            async for part in parts:
                if not _same_host(reader.location, self._options.endpoint):
                    self._locations[file.path] = reader.location
                yield part

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _headers(self) -> dict[str, str]:
        agent = {"User-Agent": _LIBRARY}
        return agent | {"Authorization": f"Bearer {self._token}"} if self._token else agent

    def _address(self, path: str, commit: str) -> str:
        return hf_hub_url(self._repository, path, revision=commit, endpoint=self._options.endpoint)

    async def _described(self, listed: RepoSibling, commit: str) -> SourceFile:
        """A listed file; mirrors leave out size and checksum, which the file's own headers have."""
        if listed.lfs is not None:
            checksum = Checksum(Algorithm.SHA256, listed.lfs.sha256)
            return SourceFile(listed.rfilename, listed.lfs.size, checksum)
        if listed.size is not None and listed.blob_id is not None:
            checksum = Checksum(Algorithm.GIT_SHA1, listed.blob_id)
            return SourceFile(listed.rfilename, listed.size, checksum)
        metadata = await self._ask(
            get_hf_file_metadata,
            self._address(listed.rfilename, commit),
            token=self._options.token,
            timeout=_CALL_SECONDS,
            endpoint=self._options.endpoint,
        )
        if metadata.size is None:
            raise ProblemsError(self._without_size(listed.rfilename))
        return SourceFile(listed.rfilename, metadata.size, _checksum(metadata.etag))

    async def _ask(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call the hub's client in a thread and translate what it raises."""
        try:
            return await asyncio.to_thread(call, *args, **options)
        except HfHubHTTPError as error:
            raise self._translated(error) from error
        except (OfflineModeIsEnabled, HFValidationError, FileMetadataError) as error:
            raise ProblemsError(self._unreachable(str(error))) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise TransientError(self._hidden(str(error) or type(error).__name__)) from error

    def _translated(self, error: HfHubHTTPError) -> Exception:
        status = error.response.status_code
        if isinstance(error, RevisionNotFoundError):
            return ProblemsError(self._unknown_revision())
        if is_transient(status):
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            wait_ms = asked_wait_ms(headers, real_now_ms())
            return TransientError(f"{self._repository}: status {status}", wait_ms)
        return refused(status, self._repository, urlsplit(self._options.endpoint).hostname)

    def _hidden(self, text: str) -> str:
        return redacted(text, self._options.secrets)

    def _unreachable(self, reason: str) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_SOURCE_UNREACHABLE,
            message=f"the hub cannot be asked: {self._hidden(reason)}",
            field=self._repository,
            remedy="check HF_ENDPOINT, HF_HUB_OFFLINE and the network",
        )

    def _unknown_revision(self) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_NOT_FOUND,
            message="the repository has no such revision",
            field=self._repository,
            remedy="name a branch, a tag or a commit that exists",
        )

    def _unusable(self, count: int) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_SOURCE_INVALID,
            message="the hub's listing of the repository cannot be relied on",
            field=self._repository,
            value=f"{count} files",
            remedy=f"the hub must name a commit and fewer than {_MAX_LISTED_FILES} files",
        )

    def _without_size(self, path: str) -> Problem:
        return Problem(
            code=ErrorCode.MODEL_SOURCE_INVALID,
            message="the hub doesn't say how large a file is",
            field=self._repository,
            value=path,
            remedy="use a mirror that passes the hub's headers on",
        )


def _token(options: HubOptions) -> str | None:
    if options.token is None:
        return get_token()
    return options.token if isinstance(options.token, str) else None


def _checksum(etag: str | None) -> Checksum | None:
    if etag and _SHA256.fullmatch(etag):
        return Checksum(Algorithm.SHA256, etag)
    if etag and _SHA1.fullmatch(etag):
        return Checksum(Algorithm.GIT_SHA1, etag)
    return None


def _same_host(address: str, other: str) -> bool:
    return urlsplit(address).netloc == urlsplit(other).netloc
