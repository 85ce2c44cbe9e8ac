"""What services import at module level costs a service on processes nothing it doesn't use."""

import subprocess
import sys
from pathlib import Path

import pytest

import inferbus_shared.kube

MODULES = sorted(
    f"inferbus_shared.kube.{path.stem}"
    for path in Path(inferbus_shared.kube.__file__).parent.glob("[a-z]*.py")
)


@pytest.mark.parametrize("modules", [MODULES], ids=["all"])
def test_no_module_brings_the_typed_models(modules: list[str]) -> None:
    program = (
        f"import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(any(name.split('.')[0] == 'kubernetes_asyncio' for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert len(modules) > 10
