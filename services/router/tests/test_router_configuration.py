"""What `routerConfiguration.yaml` may say, and what is told where it can't be used."""

from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_router.configuration_file import ConfigurationFile, parse_configuration
from inferbus_router.plugin_factory import make_pipeline
from inferbus_router.policy_plugins_load import LeastLatency, LeastRequestFilter
from inferbus_router.policy_router_configuration import RouterConfiguration

EXAMPLE = """\
scheduler:
  pluginConfig:
  - {name: least-request, args: {maxWaitingRequests: 7}}
  - {name: prefix-cache, args: {blockSizeToHash: 32, topKMatches: 3}}
  - name: least-latency
    args:
      TTFTTPOTWeightFactor: 0.25
  plugins:
    Filter: {enabled: [least-request, lora-affinity]}
    Score:
      enabled:
      - {name: least-request, weight: 1}
      - {name: prefix-cache, weight: 2}
      - {name: least-latency, weight: 1}
auth: {issuer: "https://issuer", audiences: [kthena.io], jwksUri: "https://issuer/jwks.json"}
"""


def parsed(text: str) -> RouterConfiguration:
    return parse_configuration(text.encode(), "router.yaml")


def refusals(text: str) -> list[tuple[str | None, str | None, str]]:
    """(file and line, field, message) of everything that is wrong."""
    with pytest.raises(ProblemsError) as raised:
        parsed(text)
    assert all(problem.remedy for problem in raised.value.problems)
    return [(each.file, each.field, each.message) for each in raised.value.problems]


def test_plugins_run_in_the_order_and_with_the_arguments_of_the_file() -> None:
    configuration = parsed(EXAMPLE)
    assert configuration.scheduler is not None
    pipeline = make_pipeline(configuration.scheduler)

    assert [plugin.name for plugin in pipeline.filters] == ["least-request", "lora-affinity"]
    assert [(plugin.name, weight) for plugin, weight in pipeline.scores] == [
        ("least-request", 1),
        ("prefix-cache", 2),
        ("least-latency", 1),
    ]
    limit, latency = pipeline.filters[0], pipeline.scores[2][0]
    assert isinstance(limit, LeastRequestFilter)
    assert isinstance(latency, LeastLatency)
    assert (limit.max_waiting_requests, latency.ttft_weight) == (7, 0.25)
    assert configuration.notes == ()


def test_who_may_ask_is_read_too() -> None:
    section = parsed(EXAMPLE).authentication

    assert section.demands_credentials
    assert (section.issuer, section.audiences, section.jwks_uri) == (
        "https://issuer",
        ("kthena.io",),
        "https://issuer/jwks.json",
    )


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "auth: {}\n", "scheduler:\n"])
def test_rt_36_a_file_without_a_scheduler_section_means_the_default(text: str) -> None:
    """The reference then answers every request with 503."""
    assert parsed(text).scheduler is None


@pytest.mark.parametrize("factor", ["-0.1", "1.1"])
def test_t052_a_weight_factor_out_of_range_is_refused(factor: str) -> None:
    ((file, field, message),) = refusals(EXAMPLE.replace("0.25", factor))

    assert file == "router.yaml:7"
    assert field == "scheduler.pluginConfig[2].args.TTFTTPOTWeightFactor"
    assert "less than or equal" in message or "greater than or equal" in message


@pytest.mark.parametrize("factor", [".nan", ".inf"])
def test_t052_a_weight_factor_that_is_no_number_is_refused(factor: str) -> None:
    ((file, _, message),) = refusals(EXAMPLE.replace("0.25", factor))

    assert file == "router.yaml:7"
    assert message == f"JSON has no number {factor}"


def test_t054_random_beside_another_score_plugin_is_left_out() -> None:
    text = EXAMPLE.replace("least-latency, weight", "random, weight")
    configuration = parsed(text)

    assert configuration.scheduler is not None
    assert [name for name, _ in configuration.scheduler.scores] == ["least-request", "prefix-cache"]
    assert configuration.notes == ("random is left out: it goes only with no other score plugin",)


@pytest.mark.parametrize(
    ("change", "line", "field", "message"),
    [
        (
            ("enabled: [least-request, lora", "enabled: [lest-request, lora"),
            9,
            "scheduler.plugins.Filter.enabled[0]",
            "input should be 'least-request' or 'lora-affinity'",
        ),
        (
            ("{name: prefix-cache, weight", "{name: prefix, weight"),
            13,
            "scheduler.plugins.Score.enabled[1].name",
            "input should be 'gpu-usage', 'kvcache-aware', 'least-latency', 'least-request', "
            "'prefix-cache' or 'random'",
        ),
        (
            ("{name: prefix-cache, args", "{name: prefixes, args"),
            4,
            "scheduler.pluginConfig[1].name",
            None,
        ),
        (
            ("topKMatches", "topKMatch"),
            4,
            "scheduler.pluginConfig[1].args.topKMatch",
            "there is no such field; the arguments are blockSizeToHash, maxBlocksToMatch, "
            "maxHashCacheSize, topKMatches",
        ),
        (("Filter:", "filter:"), 9, "scheduler.plugins.filter", "there is no such field"),
        (("weight: 2", "weight: two"), 13, "scheduler.plugins.Score.enabled[1].weight", None),
        (("weight: 2", "weight: 2.5"), 13, "scheduler.plugins.Score.enabled[1].weight", None),
        (("jwksUri", "jwksURI"), 15, "auth.jwksURI", "there is no such field"),
    ],
)
def test_rt_36_what_is_not_known_is_told_with_its_place(
    change: tuple[str, str], line: int, field: str, message: str | None
) -> None:
    assert EXAMPLE.count(change[0]) == 1
    found = refusals(EXAMPLE.replace(*change))

    assert [(file, name) for file, name, _ in found] == [(f"router.yaml:{line}", field)]
    assert message is None or found[0][2] == message


def test_everything_that_is_wrong_is_told_at_once() -> None:
    text = EXAMPLE.replace("0.25", "7").replace("topKMatches", "top")

    assert [field for _, field, _ in refusals(text)] == [
        "scheduler.pluginConfig[1].args.top",
        "scheduler.pluginConfig[2].args.TTFTTPOTWeightFactor",
    ]


@pytest.mark.parametrize(
    "text", ["[]", "scheduler: 5", "scheduler: {pluginConfig: [5]}", "a: {", "a: 1\n---\nb: 2"]
)
def test_what_is_no_configuration_is_refused(text: str) -> None:
    assert refusals(text)


def test_what_has_another_effect_than_it_seems_is_noted() -> None:
    text = (
        EXAMPLE.replace("maxWaitingRequests: 7", "maxWaitingRequests: 0")
        .replace("weight: 2", "weight: -2")
        .replace("least-latency, weight: 1", "least-request, weight: 4")
        .replace("Filter: {", "Filter: {disabled: [lora-affinity], ")
        .replace("name: least-latency\n    args:\n      TTFTTPOTWeightFactor: 0.25", "name: random")
    )
    configuration = parsed(text)

    assert configuration.scheduler is not None
    assert configuration.scheduler.scores == (("least-request", 4), ("prefix-cache", 0))
    assert set(configuration.notes) == {
        "least-request: maxWaitingRequests 0 means 10",
        "prefix-cache has weight -2: its score is ignored",
        "least-request is enabled twice: the last weight counts",
        "Filter.disabled has no effect: only what is enabled runs",
    }


class Followed:
    """A file, and what was put in force of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[RouterConfiguration] = []
        self.file = ConfigurationFile(path, self.seen.append)


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    path = tmp_path / "routerConfiguration.yaml"
    path.write_text(EXAMPLE)
    made = Followed(path)
    made.file.load()
    return made


def test_rt_36_a_changed_file_is_put_in_force(followed: Followed) -> None:
    followed.path.write_text(EXAMPLE.replace("weight: 2", "weight: 3"))
    followed.file.look()
    followed.file.look()

    assert len(followed.seen) == 2
    assert followed.seen[1] == parsed(EXAMPLE.replace("weight: 2", "weight: 3"))
    assert followed.file.is_good


def test_a_mounted_file_is_followed_when_its_folder_is_swapped(tmp_path: Path) -> None:
    """As Kubernetes updates a mounted ConfigMap."""
    for name, text in (("old", EXAMPLE), ("new", EXAMPLE.replace("weight: 2", "weight: 3"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "router.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("old")
    followed = Followed(tmp_path / "..data" / "router.yaml")
    followed.file.load()
    (tmp_path / "..next").symlink_to("new")
    (tmp_path / "..next").rename(tmp_path / "..data")
    followed.file.look()

    assert len(followed.seen) == 2


def test_rt_36_a_bad_file_keeps_the_one_before_and_says_so(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.path.write_text("scheduler: {plugins: {Filter: {enabled: [typo]}}}")
    followed.file.look()

    assert len(followed.seen) == 1
    assert (followed.file.is_good, followed.file.failures) == (False, 1)
    assert "scheduler.plugins.Filter.enabled[0]" in caplog.text
    followed.path.write_text(EXAMPLE)
    followed.file.look()
    assert (followed.file.is_good, len(followed.seen)) == (True, 2)


def test_a_file_that_is_gone_keeps_what_it_said(followed: Followed) -> None:
    followed.path.unlink()
    followed.file.look()

    assert (len(followed.seen), followed.file.is_good) == (1, False)


def test_a_file_that_is_missing_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as raised:
        Followed(tmp_path / "none.yaml").file.load()

    (problem,) = raised.value.problems
    assert problem.code is ErrorCode.BAD_SETTING
    assert "INFERBUS_ROUTER_CONFIGURATION_FILE" in problem.remedy
