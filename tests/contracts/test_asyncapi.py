"""The AsyncAPI documents hold together, and say what the permissions allow: no less, no more."""

import copy
import re
from typing import Any

import pytest

from inferbus_contracts.permissions import grants
from inferbus_contracts.published.asyncapi import asyncapi_documents
from inferbus_contracts.published.channels import Direction, uses
from inferbus_contracts.published.schemas import published_schemas
from inferbus_contracts.published.structure import structure_faults
from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from tests.contracts.patterns import covers

DOCUMENTS = asyncapi_documents()
SCHEMAS = published_schemas()
USERS = [service for service in Service if service is not Service.PROVISIONER]
EACH = pytest.mark.parametrize("service", USERS)
AUTOSCALER = DOCUMENTS["autoscaler.json"]


def pattern(address: str) -> str:
    """An address as the server's subject with wildcards; `{subject}` stands for several tokens."""
    return re.sub(r"\{\w+\}", "*", address.replace("{subject}", ">"))


@EACH
def test_a_document_holds_together(service: Service) -> None:
    assert structure_faults(DOCUMENTS[f"{service.value}.json"], SCHEMAS) == []


@EACH
def test_nothing_is_said_twice(service: Service) -> None:
    found = uses(service)
    document = DOCUMENTS[f"{service.value}.json"]
    assert len(document["operations"]) == len(found)
    subjects = [item["address"] for item in document["channels"].values() if item["address"]]
    assert len(set(subjects)) == len(subjects)


@EACH
def test_a_service_is_shown_to_say_what_it_may_say(service: Service) -> None:
    shown = {
        pattern(use.channel.subject or "")
        for use in uses(service)
        if use.direction is Direction.SEND
    }
    allowed = {
        subject
        for subject in grants(service, topology()).publish
        if not subject.startswith(("$JS.", "$O."))
    }
    assert all(any(covers(wide, narrow) for wide in allowed) for narrow in shown)
    hidden = {wide for wide in allowed if not any(covers(wide, narrow) for narrow in shown)}
    assert all(".woken." in subject for subject in hidden), "the server writes fired timers alone"


@EACH
def test_a_service_is_shown_to_hear_only_what_it_may_hear(service: Service) -> None:
    mine = grants(service, topology())
    for use in uses(service):
        if use.direction is Direction.SEND:
            continue
        subject = pattern(use.channel.subject or "")
        follows = [f"$JS.API.DIRECT.GET.{stream}.{subject}" for stream in use.channel.streams]
        polls = [
            durable
            for durable in topology(["node-1"]).durables
            if durable.service is service and durable.stream in use.channel.streams
        ]
        heard = [subject] if not use.channel.streams else follows
        allowed = (*mine.subscribe, *mine.publish)
        assert polls or all(any(covers(wide, one) for wide in allowed) for one in heard), use


def test_a_request_names_its_answer_on_both_sides() -> None:
    asks = DOCUMENTS["workload-reconciler.json"]["operations"]["send.objects.scale"]
    answers = DOCUMENTS["spec-watcher.json"]["operations"]["receive.objects.scale"]
    assert asks["reply"] == answers["reply"]
    assert answers["bindings"]["nats"]["queue"] == "spec-watcher"
    assert "bindings" not in asks


def test_an_event_says_where_it_stands_and_what_it_is() -> None:
    channel = AUTOSCALER["channels"]["scaling.decided"]
    message = AUTOSCALER["components"]["messages"]["scaling.decided.v1"]
    assert channel["address"] == "inferbus.v1.scaling.decided.{kind}.{namespace}.{name}"
    assert channel["x-streams"] == ["DECISIONS"]
    assert message["payload"] == {"$ref": "../schemas/events/scaling.decided.v1.json"}
    fixed = message["headers"]["allOf"][1]["properties"]
    assert fixed["ce-type"] == {"const": "dev.inferbus.scaling.decided.v1"}
    assert fixed["Nats-TTL"] == {"const": "7776000s"}


def test_a_decider_hears_from_its_inbox_and_sets_timers() -> None:
    operations = set(AUTOSCALER["operations"])
    assert {"receive.inbox.metrics.sampled", "send.timer.autoscaler"} <= operations
    assert not {"receive.metrics.sampled", "send.woken.autoscaler"} & operations
    assert AUTOSCALER["channels"]["inbox.metrics.sampled"]["address"] == (
        "inbox.autoscaler.{partition}.metrics.sampled.{kind}.{namespace}.{name}"
    )


def test_nothing_refers_to_another_place() -> None:
    for text in (str(document) for document in DOCUMENTS.values()):
        assert "http" not in text.replace("https://inferbus.dev/schemas/", "")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("asyncapi", "2.6.0", "asyncapi is '2.6.0', not '3.0.0'"),
        ("info/title", "", "info.title is missing"),
        ("channels/scaling.decided/parameters/kind", ..., "kind stands in address alone"),
        ("channels/scaling.decided/parameters/more", {}, "more stands in parameters alone"),
        ("channels/scaling.decided/messages", {}, "channel scaling.decided has no message"),
        ("operations/send.scaling.decided", ..., "scaling.decided is used by no operation"),
        ("operations/send.scaling.decided/action", "publish", "action is 'publish'"),
        ("operations/send.scaling.decided/channel", {}, "names no channel"),
        (
            "operations/send.scaling.decided/channel/$ref",
            "#/channels/gone",
            "refers to #/channels/gone, which isn't there",
        ),
        (
            "operations/send.scaling.decided/messages/0/$ref",
            "#/channels/demand.summed/messages/demand.summed.v1",
            "is no message of #/channels/scaling.decided",
        ),
        ("components/messages/scaling.decided.v1", ..., "scaling.decided.v1, which isn't there"),
        (
            "components/messages/scaling.decided.v1/payload/$ref",
            "https://example.com/x.json",
            "refers to https://example.com/x.json",
        ),
    ],
)
def test_what_does_not_hold_together_is_told(path: str, value: Any, said: str) -> None:
    document = copy.deepcopy(AUTOSCALER)
    *around, last = path.split("/")
    place: Any = document
    for part in around:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    assert any(said in fault for fault in structure_faults(document, SCHEMAS))
