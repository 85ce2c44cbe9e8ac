"""Names and precedence of the reference's options, and whom a token is shown to."""

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_model_downloader.policy_options import HUB_ENDPOINT, hub_options, parse_config


def test_without_anything_the_public_hub_and_what_its_client_finds() -> None:
    options = hub_options({})
    assert (options.endpoint, options.token, options.revision) == (HUB_ENDPOINT, None, None)


def test_a_key_of_the_config_wins_over_the_environment() -> None:
    environment = {"HF_AUTH_TOKEN": "e", "HF_ENDPOINT": "http://e/", "HF_REVISION": "er"}
    config = parse_config('{"hf_token": "c", "hf_endpoint": "http://c", "hf_revision": ""}')
    options = hub_options({**environment, **config})
    assert (options.endpoint, options.token, options.revision) == ("http://c", "c", "er")


@pytest.mark.parametrize("name", ["HF_AUTH_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_every_name_of_a_token_counts(name: str) -> None:
    options = hub_options({name: " t\n"})
    assert options.token == "t"
    assert options.secrets == ("t",)


@pytest.mark.parametrize(
    "text", ["{", "[]", "5", '{"hf_tokn": "x"}', '{"hf_token": 5}', '{"hf_token": null}']
)
def test_a_config_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_config(text)
    assert caught.value.problems[0].code is ErrorCode.BAD_ARGUMENT


def test_keys_for_other_sources_are_known() -> None:
    assert parse_config('{"access_key": "a", "secret_key": "b", "endpoint": "c"}') == {
        "ACCESS_KEY": "a",
        "SECRET_KEY": "b",
        "ENDPOINT": "c",
    }


def test_the_token_of_a_node_goes_to_its_own_endpoint_only() -> None:
    node = {"HF_TOKEN": "secret", "HF_ENDPOINT": "https://hub.example"}
    assert hub_options({}, node).token == "secret"
    assert hub_options({"HF_ENDPOINT": "https://hub.example/"}, node).token == "secret"
    assert hub_options({"HF_ENDPOINT": "https://evil.example"}, node).token is False
    assert hub_options({"HF_ENDPOINT": "https://evil.example"}, {}).token is False
    own = hub_options({"HF_ENDPOINT": "https://other.example", "HF_TOKEN": "mine"}, node)
    assert own.token == "mine"


@pytest.mark.parametrize("endpoint", ["hub.example", "ftp://h", "http://", "http://u:p@h"])
def test_an_endpoint_that_is_no_address_is_refused_without_showing_its_secrets(
    endpoint: str,
) -> None:
    with pytest.raises(ProblemsError) as caught:
        hub_options({"HF_ENDPOINT": endpoint})
    assert caught.value.problems[0].field == "HF_ENDPOINT"
    assert "u:p" not in str(caught.value)
