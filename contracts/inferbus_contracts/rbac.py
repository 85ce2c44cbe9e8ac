"""`python -m inferbus_contracts.rbac NAMESPACE...`: the services' rights in these namespaces alone.

Prints manifests that take the place of those in `deploy/rbac`, for services whose settings hold
them to the same namespaces. Writes nothing.
"""

import argparse
import sys
from collections.abc import Sequence

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.manifests.cluster_rights import RIGHTS
from inferbus_contracts.manifests.rbac import namespace, service_manifests
from inferbus_contracts.manifests.yaml_text import yaml_text
from inferbus_contracts.published.command import run_command
from inferbus_contracts.resources.names import is_dns1123_label


def manifests_text(namespaces: Sequence[str]) -> str:
    """The manifests as YAML; raises `ProblemsError` for what is no namespace."""
    wrong = [name for name in namespaces if not is_dns1123_label(name)]
    if wrong:
        raise ProblemsError(*map(_no_namespace, wrong))
    manifests = [namespace()]
    for service in RIGHTS:
        manifests += service_manifests(service, namespaces)
    return yaml_text(manifests, f"Rights in {', '.join(namespaces)} alone.").decode().rstrip()


def _no_namespace(name: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_NAME,
        message="this can't be the name of a namespace",
        value=name,
        remedy="use at most 63 lower-case letters, digits and '-'",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rights in some namespaces alone.")
    parser.add_argument("namespaces", nargs="+", metavar="NAMESPACE")
    sys.exit(run_command(lambda: manifests_text(parser.parse_args().namespaces)))
