"""A plain call to an API server: what the server itself answers, with no client in between."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

SECONDS = 30.0
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Answer:
    """Status and body of a response; a `body` that isn't JSON is text."""

    status: int
    body: Any


def call(
    method: str,
    url: str,
    document: object = None,
    *,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    content_type: str = JSON,
    accept: str = JSON,
) -> Answer:
    """Ask once; a refusal is an answer too. Raises `OSError` where nobody answers."""
    request = urllib.request.Request(url, method=method, headers={"Accept": accept})
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if document is not None:
        request.add_header("Content-Type", content_type)
        request.data = json.dumps(document).encode()
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=SECONDS) as response:
            return Answer(response.status, _read(response.read()))
    except urllib.error.HTTPError as refusal:
        with refusal:
            return Answer(refusal.code, _read(refusal.read()))


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
