"""The shortest way from nothing to an answer."""

import pytest

from tests.support.eventually import eventually
from tests.support.platform import model_manifests, running_platform


@pytest.mark.slow
async def test_a_model_is_applied_answers_and_scales() -> None:
    with running_platform("--startup", "0") as platform:
        platform.apply(*model_manifests("chat", scaling=(1, 3)))
        await eventually(lambda: platform.complete("chat").status == 200, timeout=30)
        assert platform.complete("nothing").status == 404
