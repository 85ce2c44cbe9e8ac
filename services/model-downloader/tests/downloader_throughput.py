"""How fast the downloader is beside curl, on loopback, with one file that is larger than caches.

    python services/model-downloader/tests/downloader_throughput.py [--mib 1024] [--runs 5] [--json]

The server sends with sendfile from a process of its own. curl writes one file over one connection
and checks nothing; the downloader resolves, writes, hashes (SHA-256), flushes to disk and renames.
Both end with the content in the same folder; the medians of interleaved runs are compared.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

SEED = 1
MIB = 1 << 20


def serve(weights: Path, sha256: str, ready: Connection) -> None:
    """A hub with one file."""
    size = weights.stat().st_size
    listing = {
        "id": "o/m",
        "sha": "a" * 40,
        "siblings": [
            {
                "rfilename": "weights",
                "size": size,
                "blobId": "b" * 40,
                "lfs": {"sha256": sha256, "size": size, "pointerSize": 134},
            }
        ],
    }

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            if self.path.startswith("/api/"):
                body = json.dumps(listing).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            start, stop = (int(match[1]), int(match[2]) + 1) if match else (0, size)
            self.send_response(206 if match else 200)
            self.send_header("Content-Length", str(stop - start))
            if match:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
            self.end_headers()
            with weights.open("rb") as file:
                while start < stop:
                    start += os.sendfile(
                        self.connection.fileno(), file.fileno(), start, min(stop - start, 8 * MIB)
                    )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    ready.send(server.server_address[1])
    server.serve_forever()


def timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def curl(url: str, folder: Path) -> None:
    subprocess.run(["curl", "-sf", "-o", folder / "curl", f"{url}/weights"], check=True)


def curl_and_check(url: str, folder: Path) -> None:
    """What makes the two comparable: the same, hashed and flushed."""
    curl(url, folder)
    subprocess.run(["sha256sum", folder / "curl"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["sync", folder / "curl"], check=True)


def downloader(url: str, folder: Path, *words: str) -> None:
    environment = {**os.environ, "HF_ENDPOINT": url}
    command = [sys.executable, "-m", "inferbus_model_downloader.main"]
    output = folder / "model"
    subprocess.run(
        [*command, "fetch", "hf://o/m", "-o", output, *words],
        env=environment,
        check=True,
        capture_output=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        result = measure(folder, options.mib, options.runs)
    sys.stdout.write(json.dumps(result) + "\n" if options.json else table(result))


def measure(folder: Path, mib: int, runs: int) -> dict[str, object]:
    source = folder / "source"
    block = random.Random(SEED).randbytes(MIB)
    with source.open("wb") as file:
        for number in range(mib):
            file.write(number.to_bytes(8, "big") + block[8:])
    with source.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(source, sha256, theirs), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    ways: dict[str, Callable[[Path], None]] = {
        "curl": lambda target: curl(url, target),
        "curl, sha256sum, sync": lambda target: curl_and_check(url, target),
        "downloader, 1 connection": lambda target: downloader(url, target, "-w", "1"),
        "downloader, 8 connections": lambda target: downloader(url, target, "-w", "8"),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, run in ways.items():
            target = folder / "target"
            target.mkdir()
            seconds[way].append(timed(lambda run=run, target=target: run(target)))  # type: ignore[misc]
            shutil.rmtree(target)
    server.terminate()
    return {
        "mib": mib,
        "runs": runs,
        "seed": SEED,
        "cpus": os.cpu_count(),
        "mib_per_second": {
            way: {
                "median": round(mib / statistics.median(times)),
                "lowest": round(mib / max(times)),
                "highest": round(mib / min(times)),
            }
            for way, times in seconds.items()
        },
    }


def table(result: dict[str, object]) -> str:
    rates = result["mib_per_second"]
    assert isinstance(rates, dict)
    lines = [f"{result['mib']} MiB, {result['runs']} runs, {result['cpus']} CPUs; MiB/s"]
    for way, rate in rates.items():
        lines.append(f"{way:28} {rate['median']:6} ({rate['lowest']} to {rate['highest']})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
