"""Manifests as people write them, and every way in which they can be wrong."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.admission import admit
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.manifests import locate, manifest_files, read_manifests, read_path

EXAMPLES = Path(__file__).parents[3] / "shared" / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))

TWO = """\
# a comment
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
data:
  on: x
---

---
# nothing here
---
apiVersion: v1
kind: Pod
metadata:
  name: b
"""

SERVING = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata:
  name: chat
  labels:
    app.kubernetes.io/name: x y
spec:
  replica: 1
  template:
    roles:
      - name: a
        entryTemplate: {spec: {containers: [{name: c, image: i}]}}
        workerReplicas: "0"
"""


def problems_of(text: str | bytes, file: str = "f.yaml") -> tuple[Problem, ...]:
    with pytest.raises(ProblemsError) as caught:
        read_manifests(text, file)
    return caught.value.problems


def test_documents_come_in_order_with_their_lines_and_empty_ones_are_left_out() -> None:
    documents = read_manifests(TWO, "two.yaml")
    assert [document.place for document in documents] == ["two.yaml:2", "two.yaml:13"]
    assert documents[0].object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"true": "x"},
    }


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n---\n", "~", "null\n"])
def test_a_text_without_objects_is_empty(text: str) -> None:
    assert read_manifests(text, "f.yaml") == []


@pytest.mark.parametrize(
    "data",
    [
        "\ufeff" + TWO,
        TWO.encode("utf-8-sig"),
        TWO.encode("utf-16"),
        TWO.replace("\n", "\r\n").encode(),
        TWO.encode(),
    ],
)
def test_marks_and_line_ends_do_not_matter(data: str | bytes) -> None:
    documents = read_manifests(data, "f.yaml")
    assert [document.object for document in documents] == [
        document.object for document in read_manifests(TWO, "f.yaml")
    ]
    assert [document.line for document in documents] == [2, 13]


@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_lists_are_unfolded_with_the_lines_of_their_items(kind: str) -> None:
    text = (
        f"apiVersion: v1\nkind: {kind}\nitems:\n"
        "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
        "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: b\n"
    )
    documents = read_manifests(text, "l.yaml")
    assert [document.object["metadata"]["name"] for document in documents] == ["a", "b"]
    assert [document.line for document in documents] == [4, 7]
    assert documents[1].line_of("metadata.name") == 10


def test_items_of_a_typed_list_may_leave_out_what_the_list_says() -> None:
    text = "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}]\n"
    (document,) = read_manifests(text, "l.yaml")
    assert document.object == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def test_lists_in_lists_are_unfolded() -> None:
    inner = "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}]}"
    (document,) = read_manifests(f"kind: List\napiVersion: v1\nitems: [{inner}]", "l.yaml")
    assert document.object["kind"] == "Pod"


def test_an_empty_list_holds_nothing() -> None:
    assert read_manifests("kind: List\napiVersion: v1\nitems: []", "l.yaml") == []


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}',
        '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "a"}}',
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\\u0061"}}',
    ],
)
def test_json_is_accepted(text: str) -> None:
    (document,) = read_manifests(text, "p.json")
    assert document.object["metadata"] == {"name": "a"}


def test_json_that_is_no_yaml_is_read_too() -> None:
    key = "k" * 2000
    (document,) = read_manifests(f'\n\n{{"kind": "ConfigMap", "data": {{"{key}": "x"}}}}', "p.json")
    assert document.object["data"] == {key: "x"}
    assert document.line == document.line_of("data") == 3


def test_escapes_that_only_json_has_are_read() -> None:
    text = '{"kind": "ConfigMap", "data": {"a": "\\ud83d\\ude00\\/"}}'
    assert read_manifests(text, "p.json")[0].object["data"]["a"] == "😀/"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: b: c", 1, "mapping values are not allowed"),
        ("a:\n\t- b", 2, "tabs"),
        ("a: [1, 2\nb: 3", 2, "expected ',' or ']'"),
        ("a: 1\n---\nb: 'x\n", 4, "quoted scalar"),
        ("- a\nb: c", 2, "expected <block end>"),
        ("a: *b", 1, "undefined alias"),
        ("a: 1\nb: 2\na: 3", 3, "second time; the first is on line 1"),
        ("m: {a: 1, 'a': 2}", 1, "'a'"),
        ("1: x\n'1': y", 2, "'1'"),
        ("a: !!binary aGk=", 1, "no meaning in JSON"),
        ("a: !custom x", 1, "no meaning in JSON"),
        ("a: !!set {x}", 1, "no meaning in JSON"),
        ("a: .inf", 1, "JSON has no number"),
        ("a: 1e999", 1, "JSON has no number"),
        ("a: .nan", 1, "JSON has no number"),
        ("a: !!int x", 1, "invalid literal"),
        ("~: a", 1, "key is a text"),
        ("{[a]: b}", 1, "key is a text"),
        ("a: &x\n  b: *x", 1, "contains itself"),
        ("a: " + "[" * 101 + "]" * 101, 1, "nested over 100 levels"),
        ('{"a": "\\ud83d"}', 1, "half a character"),
        ("a: 1\nb: \x01", 2, "control character"),
        ("<<: 1", 1, "<< takes a mapping"),
        ("[" * 5000, 1, ""),
        (b"a: 1\nb: \xff", 2, "UTF-8"),
    ],
)
def test_text_that_cannot_be_read_is_told_with_its_line(
    text: str | bytes, line: int, said: str
) -> None:
    (problem,) = problems_of(text)
    assert problem.code is ErrorCode.BROKEN_YAML
    assert problem.file == f"f.yaml:{line}"
    assert said in f"{problem.message} {problem.remedy}"
    assert "column" in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{\n"a": 1\n}}', 3, "JSON"),
        ('{\n"a": 1,\n"a": 2}', 3, "second time; the first is on line 2"),
        (f'{{"{"k" * 2000}": 1, "a": 1, "a": 2}}', 1, "second time"),
        (f'{{"{"k" * 2000}": 1, "a": NaN}}', 1, "NaN"),
    ],
)
def test_broken_json_is_told_with_its_line(text: str, line: int, said: str) -> None:
    (problem,) = problems_of(text, "p.json")
    assert problem.code is ErrorCode.BROKEN_YAML
    assert problem.file == f"p.json:{line}"
    assert said in problem.message


def test_aliases_that_multiply_are_stopped() -> None:
    rows = ["a0: &a0 x"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = problems_of("\n".join(rows))
    assert "too large" in problem.message


@pytest.mark.parametrize("text", ["- a", "text", "5", "kind: List\nitems: [1]"])
def test_what_is_no_object_is_told(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.code is ErrorCode.NOT_A_DOCUMENT


def test_every_document_that_is_no_object_is_told() -> None:
    told = problems_of("- a\n---\nkind: Pod\n---\ntext")
    assert [problem.file for problem in told] == ["f.yaml:1", "f.yaml:5"]


def test_the_same_object_twice_is_told_with_both_places() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
    (problem,) = problems_of(f"{pod}---\n{pod.replace('name: a', 'name: a, namespace: default')}")
    assert problem.code is ErrorCode.DUPLICATE_NAME
    assert problem.file == "f.yaml:5"
    assert "f.yaml:1" in problem.message
    assert problem.object == "Pod/default/a"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("apiVersion: v1\nkind: Service", "apiVersion: inference.llmaz.io/v1alpha1\nkind: Service"),
        ("apiVersion: v1\nkind: Pod", "apiVersion: v1\nkind: ConfigMap"),
        ("apiVersion: a/v1\nkind: X", "apiVersion: b/v1\nkind: X"),
    ],
)
def test_different_kinds_may_share_a_name(first: str, second: str) -> None:
    name = "\nmetadata: {name: a}\n"
    assert len(read_manifests(f"{first}{name}---\n{second}{name}", "f.yaml")) == 2


def test_a_namespace_tells_no_cluster_scoped_objects_apart() -> None:
    model = "apiVersion: llmaz.io/v1alpha1\nkind: OpenModel\nmetadata: {name: a%s}\n"
    (problem,) = problems_of(model % "" + "---\n" + model % ", namespace: b")
    assert problem.object == "OpenModel/_/a"


def test_problems_of_admission_get_the_line_of_their_field() -> None:
    documents = read_manifests(f"---\n{SERVING}", "s.yaml")
    (document,) = documents
    with pytest.raises(ProblemsError) as caught:
        admit(document.object, file=document.place)
    told = {problem.field: problem.file for problem in locate(caught.value.problems, documents)}
    assert told == {
        "spec.replica": "s.yaml:9",
        "spec.template.roles[0].workerReplicas": "s.yaml:14",
    }


def test_a_field_that_is_missing_is_told_where_it_should_be() -> None:
    (document,) = read_manifests(SERVING, "s.yaml")
    assert document.line_of("spec.template.roles[0].entryTemplate.spec") == 12
    assert document.line_of("spec.template.roles[0].maxUnavailable") == 11
    assert document.line_of('metadata.labels["app.kubernetes.io/name"]') == 6
    assert document.line_of("status.x") == 1
    assert document.line_of(None) == 1


def test_problems_of_elsewhere_stay_as_they_are() -> None:
    other = Problem(code=ErrorCode.NOT_FOUND, message="m", file="other.yaml:1", field="spec")
    assert locate([other], read_manifests(SERVING, "s.yaml")) == [other]


def test_a_folder_is_read_in_order_of_name(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.yaml", "a.yml", "sub/c.json", ".hidden.yaml", ".git/d.yaml", "notes.txt"):
        (tmp_path / name).write_text(pod.format(name.strip(".").split(".")[0].replace("/", "-")))
    documents = read_path(tmp_path)
    assert [document.object["metadata"]["name"] for document in documents] == ["a", "b", "sub-c"]
    assert documents[0].file == str(tmp_path / "a.yml")


def test_a_folder_that_cannot_be_read_is_told_and_never_taken_for_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The superuser, who runs tests in containers, may read every folder: the system's answer is
    put in its place."""
    (tmp_path / "a.yaml").write_text(TWO)
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir = os.scandir

    def refusing(path: str | Path) -> Any:
        if Path(path) == locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PermissionError):
        manifest_files(tmp_path)
    with pytest.raises(ProblemsError) as caught:
        read_path(tmp_path)
    (problem,) = caught.value.problems
    assert (problem.code, problem.file) == (ErrorCode.PERMISSION_DENIED, str(locked))


def test_a_file_of_any_name_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(TWO)
    assert len(read_path(str(file))) == 2


def test_problems_of_all_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: b: c")
    (tmp_path / "b.yaml").write_text("- x")
    (tmp_path / "c.yaml").write_text(TWO)
    (tmp_path / "d.yaml").write_text(TWO)
    with pytest.raises(ProblemsError) as caught:
        read_path(tmp_path)
    places = [Path(problem.file or "").name for problem in caught.value.problems]
    assert places == ["a.yaml:1", "b.yaml:1", "d.yaml:2", "d.yaml:13"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        read_path(tmp_path / "missing.yaml")
    (problem,) = caught.value.problems
    assert problem.code is ErrorCode.BAD_ARGUMENT
    assert problem.file == str(tmp_path / "missing.yaml")


@pytest.mark.skipif(not FILES, reason="the examples are not beside this checkout")
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_manifests_that_users_already_have_are_admitted(file: Path) -> None:
    documents = read_path(file)
    assert documents
    for document in documents:
        admitted = admit(document.object, file=document.place)
        assert admit(admitted.object).object == admitted.object
