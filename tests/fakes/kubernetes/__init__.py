"""A Kubernetes API server for tests, without a cluster: what a controller notices of one."""

from tests.fakes.kubernetes.faults import Answer, Call, Cut, Fault, Hang, Page
from tests.fakes.kubernetes.server import ADMIN, FakeKubernetes

__all__ = ["ADMIN", "Answer", "Call", "Cut", "FakeKubernetes", "Fault", "Hang", "Page"]
