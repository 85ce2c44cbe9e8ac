"""A node with a cache, against one hub: the downloader in this process, and as a program."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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

    def start(
        self, *words: str, stderr: int = subprocess.PIPE, **variables: str
    ) -> subprocess.Popen[str]:
        """The program as users run it."""
        return subprocess.Popen(
            [sys.executable, "-m", "inferbus_model_downloader.main", *words],
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
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
