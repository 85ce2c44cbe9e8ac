"""The numbered cases of the ModelServing specification, each on both API servers.

They are the planner's own tests, in worlds whose objects an API server holds: what the planner is
to decide is stated once, and here it has to come true through views, HTTP and another's admission.
"""

from collections.abc import Iterator

import pytest

from tests.support.kube_stage import KubeStage
from tests.support.kube_world import worlds_on
from tests.support.planner_cases import planner_tests

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def worlds(kube_stage: KubeStage) -> Iterator[None]:
    """Tests that ask for a world get one on the server, and have to ask."""
    before = kube_stage.worlds
    with worlds_on(kube_stage):
        yield
    assert kube_stage.worlds > before, "no world was made: this test says nothing about a server"


def _collect() -> None:
    for test in planner_tests():
        assert test.__name__ not in globals(), f"two tests are called {test.__name__}"
        globals()[test.__name__] = test


_collect()
