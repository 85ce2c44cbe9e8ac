"""The configuration of a server that `inferbus up` doesn't run."""

import json
import stat
from pathlib import Path

from inferbus_contracts.services import Service
from services.cli.tests.conftest import Run


def test_every_user_gets_a_password_of_its_own(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    options = ("--server-directory", "/data", "--host", "0.0.0.0", "--port", 4333)
    written = run("provision", "--write-config", folder, *options)
    assert written.code == 0, written.err
    assert written.out.splitlines()[0] == str(folder / "nats.conf")
    passwords = {
        service: json.loads((folder / "credentials" / f"{service.value}.json").read_text())
        for service in Service
    }
    assert all(list(known) == [service.value] for service, known in passwords.items())
    words = [word for known in passwords.values() for word in known.values()]
    assert len(set(words)) == len(Service)
    config = (folder / "nats.conf").read_text()
    assert 'listen: "0.0.0.0:4333"' in config
    assert 'store_dir: "/data/jetstream"' in config
    assert all(f'"password": "{word}"' in config for word in words)
    for path in folder.rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_written_again_the_passwords_stay(run: Run, tmp_path: Path) -> None:
    run("provision", "--write-config", tmp_path)
    before = {path: path.read_text() for path in (tmp_path / "credentials").iterdir()}
    run("provision", "--write-config", tmp_path, "--node", "gpu-1")
    assert {path: path.read_text() for path in (tmp_path / "credentials").iterdir()} == before
    assert "model-downloader-gpu-1" in (tmp_path / "nats.conf").read_text()
