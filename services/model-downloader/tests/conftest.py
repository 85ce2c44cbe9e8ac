"""A hub, a cache, and ways to run the downloader on them: in this process and in others."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from model_hub import ModelHub

from inferbus_contracts.artifacts import parse_model_uri
from inferbus_model_downloader.policy_options import HubOptions
from inferbus_model_downloader.policy_progress import Progress
from inferbus_model_downloader.policy_request import Artifact, FetchRequest
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_model_downloader.wiring import build_downloader

QUICK: dict[str, Any] = {
    "max_workers": 4,
    "chunk_bytes": 64 * 1024,
    "reserve_bytes": 0,
    "stall_seconds": 0.5,
    "retry_attempts": 3,
    "retry_base_ms": 1,
    "retry_cap_ms": 5,
    "retry_patience_ms": 5_000,
}


class Node:
    """A node with a cache, against one hub."""

    def __init__(self, hub: ModelHub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.cache = folder / "cache"
        self.output = folder / "models" / "m"
        self.progress = Progress()

    def settings(self, **changes: Any) -> DownloaderSettings:
        return DownloaderSettings(**{**QUICK, **changes})

    async def fetch(
        self,
        source: str = "hf://owner/model",
        *,
        knobs: dict[str, Any] | None = None,
        **wanted: Any,
    ) -> Artifact:
        request = FetchRequest(
            source=parse_model_uri(source),
            destination=wanted.pop("destination", self.output),
            options=wanted.pop("options", HubOptions(self.hub.url, False)),
            **wanted,
        )
        self.progress = Progress()
        downloader = build_downloader(self.settings(**(knobs or {})), self.cache)
        return await downloader.fetch(request, self.progress)

    def environment(self, **variables: str) -> dict[str, str]:
        knobs = {f"INFERBUS_MODEL_DOWNLOADER_{name.upper()}": str(QUICK[name]) for name in QUICK}
        bare = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        return {
            **bare,
            **knobs,
            "HF_ENDPOINT": self.hub.url,
            "HF_HOME": str(self.folder),
            **variables,
        }

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """The program as users run it."""
        return subprocess.Popen(
            [sys.executable, "-m", "inferbus_model_downloader.main", *words],
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Run the program to its end: exit code, standard output, standard error."""
        process = self.start(*words, **variables)
        out, err = await asyncio.to_thread(process.communicate)
        return process.returncode, out, err

    def shown(self, output: Path | None = None) -> dict[str, bytes]:
        """The files that an engine sees."""
        root = output or self.output
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }

    def artifacts(self) -> list[Path]:
        """Everything that claims to be complete."""
        return sorted(self.cache.glob("artifacts/*/manifest.json"))


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    hub = ModelHub()
    yield hub
    hub.close()


@pytest.fixture
def files() -> dict[str, bytes]:
    """A small model: two large files, some small ones, an empty one, a folder."""
    random = Random(7)
    return {
        "config.json": b'{"model_type": "tiny"}',
        "model-1.safetensors": random.randbytes(700_001),
        "model-2.safetensors": random.randbytes(300_000),
        "onnx/model.onnx": random.randbytes(90_000),
        "empty.txt": b"",
    }


@pytest.fixture
def node(hub: ModelHub, files: dict[str, bytes], tmp_path: Path) -> Node:
    hub.put(files)
    return Node(hub, tmp_path)
