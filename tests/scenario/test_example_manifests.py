"""The manifests in deploy/examples: what a newcomer copies has to be right, comments included."""

import re
from pathlib import Path
from typing import Any

import pytest

from inferbus_cli.manifest_unit import read_unit
from inferbus_contracts.admission import admit
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import MODEL_ROUTE, key_of
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.settlement import Settled, settle
from inferbus_spec_watcher.expansion import ExpansionSettings, expand

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))

Objects = dict[ObjectKey, dict[str, Any]]


def objects_of(path: Path) -> Objects:
    """The objects of a file, and the children of those that are short forms."""
    objects: Objects = {}
    given = [_store(admit(one.object).object, objects) for one in read_unit([str(path)])]
    for stored in given:
        _add_children(stored, objects)
    return objects


def _store(document: dict[str, Any], objects: Objects) -> dict[str, Any]:
    key = key_of(document)
    assert key not in objects, f"{key} is there already"
    objects[key] = {**document, "metadata": {**document["metadata"], "uid": str(key)}}
    return objects[key]


def _add_children(parent: dict[str, Any], objects: Objects) -> None:
    result = expand(parent, objects.get, ExpansionSettings())
    if result is None:
        return
    assert [one.reason for one in result.conditions] == ["ChildrenRendered"]
    for child in result.children:
        _add_children(_store(child, objects), objects)


def scaling_of(objects: Objects) -> Settled:
    policies = {
        key: read_policy_object(key, str(key), 1, document)
        for key, document in objects.items()
        if key.kind.startswith("AutoscalingPolicy")
    }
    return settle(policies)


def test_there_is_one_for_each_api() -> None:
    assert [path.stem for path in FILES] == ["kthena", "llmaz"]


def test_all_can_be_applied_together() -> None:
    assert len(read_unit([str(EXAMPLES)])) == sum(len(read_unit([str(one)])) for one in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_object_is_admitted_without_a_doubt(path: Path) -> None:
    for one in read_unit([str(path)]):
        assert admit(one.object).warnings == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_policy_scales_what_runs_and_reads_a_port_that_it_has(path: Path) -> None:
    objects = objects_of(path)
    settled = scaling_of(objects)
    assert not settled.problems
    (intent,) = settled.intents
    (aim,) = intent.targets
    assert aim.target is not None
    assert aim.min_replicas < aim.max_replicas
    ports = re.findall(r"'containerPort': (\d+)", str(objects[aim.key]))
    for metric in intent.body.metrics:
        source = aim.target.metric_sources.get(metric.key)
        read = source.pod.port if source and source.pod else aim.target.endpoint.port
        assert str(read) in ports


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_commands_in_its_comments_name_what_it_makes(path: Path) -> None:
    text = path.read_text()
    objects = objects_of(path)
    routed = {one["spec"]["modelName"] for key, one in objects.items() if key.kind == MODEL_ROUTE}
    assert set(re.findall(r'"model": "([^"]+)"', text)) == routed
    asked = re.findall(r"inferbus why (\S+)", text)
    names = {key.name for key in scaling_of(objects).owners}
    assert {word.rpartition("/")[2] for word in asked} == names
    assert f"inferbus apply -f deploy/examples/{path.name}" in text
