"""What a model source means, and which artifact it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.artifacts import artifact_digest, artifact_key, parse_model_uri
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.topology import node_commands_filter


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("hf://Qwen/Qwen2.5-0.5B-Instruct", "hf://Qwen/Qwen2.5-0.5B-Instruct"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "hf://Qwen/Qwen2.5-0.5B-Instruct"),
        ("HF://Qwen/Qwen2.5-0.5B-Instruct/", "hf://Qwen/Qwen2.5-0.5B-Instruct"),
        ("gpt2", "hf://gpt2"),
        ("ms://Qwen/Qwen2", "ms://Qwen/Qwen2"),
        ("/models/x", "host:///models/x"),
        ("host:///models//x/", "host:///models/x"),
        ("file:///models/./x", "host:///models/x"),
        ("hostpath://tmp/x", "host:///tmp/x"),
        ("hostPath:///tmp/x", "host:///tmp/x"),
        ("pvc://claim/a/b/", "pvc://claim/a/b"),
        ("pvc:///claim", "pvc://claim"),
        ("s3://bucket/a//b/", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("gs://bucket/a", "gcs://bucket/a"),
        ("oss://b.oss-cn-x.aliyuncs.com/models/Q2.5/", "oss://b.oss-cn-x.aliyuncs.com/models/Q2.5"),
        ("ollama://qwen2:0.5b", "ollama://qwen2:0.5b"),
        ("oci://registry.example:5000/a/b@sha256:00", "oci://registry.example:5000/a/b@sha256:00"),
        ("https://example.com/m.gguf?x=1", "https://example.com/m.gguf?x=1"),
    ],
)
def test_every_spelling_of_a_source_has_one_canonical_uri(text: str, canonical: str) -> None:
    uri = parse_model_uri(text)
    assert str(uri) == canonical
    assert parse_model_uri(canonical) == uri


@pytest.mark.parametrize(
    "text",
    [
        "",
        " hf://a/b",
        "hf://a/b\n",
        "hf://a/b/c",
        "hf://a/b@main",
        "hf://../b",
        "hf://a/..",
        "hf://",
        "./models/x",
        "~/models",
        "../x",
        "host://models/x",
        "host:///",
        "host:///models/../../etc",
        "pvc://",
        "pvc://claim/../other",
        "hostpath://../etc",
        "oss://bucket/a.b/c",
        "oss://bucket.endpoint",
        "s3://",
        "s3://bucket/../x",
        "https:///x",
        "https://user:secret@example.com/x",
        "ftp://example.com/x",
    ],
)
def test_what_is_no_source_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_model_uri(text)
    problem = caught.value.problems[0]
    assert problem.code is ErrorCode.MODEL_SOURCE_INVALID
    assert problem.remedy


def test_credentials_in_an_address_are_not_repeated() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_model_uri("https://user:secret@example.com/x")
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_and_canonical_uris_are_stable(text: str) -> None:
    try:
        uri = parse_model_uri(text)
    except ProblemsError:
        return
    assert parse_model_uri(str(uri)) == uri
    assert ".." not in uri.address.split("/")


def test_the_digest_is_of_source_revision_and_filters() -> None:
    source = parse_model_uri("hf://a/b")
    base = artifact_digest(source, "main", ["*.json", "*.bin"], ["x"])
    assert base == artifact_digest(source, None, ["*.bin", "*.json", "*.bin"], ["x"])
    others = {
        artifact_digest(parse_model_uri("hf://a/c"), "main", ["*.json", "*.bin"], ["x"]),
        artifact_digest(source, "v1", ["*.json", "*.bin"], ["x"]),
        artifact_digest(source, "main", ["*.json"], ["x"]),
        artifact_digest(source, "main", ["*.json", "*.bin"]),
        artifact_digest(source, "main", ["x"], ["*.json", "*.bin"]),
    }
    assert base not in others
    assert len(others) == 5


def test_llmaz_s5_the_default_revision_is_that_of_the_hub() -> None:
    modelscope, huggingface = parse_model_uri("ms://a/b"), parse_model_uri("hf://a/b")
    assert artifact_digest(modelscope) == artifact_digest(modelscope, "master")
    assert artifact_digest(huggingface) == artifact_digest(huggingface, "main")


def test_a_request_arrives_at_its_node() -> None:
    key = artifact_key(artifact_digest(parse_model_uri("hf://a/b")), "node-1")
    assert node_commands_filter("node-1").startswith(
        f"inferbus.v1.model.requested.{key.kind}.{key.namespace}."
    )
