"""The table of rules of OpenModel (llmaz spec 1.1, 1.6, 3.1; LZ-T numbers are its test cases)."""

from collections.abc import Iterator
from datetime import datetime

from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding, Rule, accepted, error
from inferbus_contracts.admission.rules_metadata import LABEL_VALUE_REMEDY
from inferbus_contracts.artifacts import Scheme, parse_model_uri
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.names import is_dns1123_label, is_label_value
from inferbus_contracts.resources.open_model import (
    ModelHub,
    ModelHubName,
    OpenModel,
)

URI_SCHEMES = frozenset({Scheme.OSS, Scheme.S3, Scheme.GCS, Scheme.OLLAMA, Scheme.HOST})
_BUCKETS = frozenset({Scheme.S3, Scheme.GCS})
_HUB = "spec.source.modelHub"


def name_is_label(resource: Resource) -> Iterator[Finding]:
    """Names of llmaz's kinds go into labels and names of pods: no dots."""
    if not is_dns1123_label(resource.metadata.name):
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field="metadata.name",
            message="should be at most 63 lower-case letters, digits and hyphens",
            value=resource.metadata.name,
            remedy="write hyphens for dots, e.g. qwen2-0--5b",
        )


def has_source(resource: OpenModel) -> Iterator[Finding]:
    """The weights come from somewhere."""
    source = resource.spec.source
    if source.model_hub is None and source.uri is None:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field="spec.source",
            message="says nowhere that the model can be loaded from",
            remedy="add modelHub or uri",
        )


def _hub(resource: OpenModel) -> Iterator[ModelHub]:
    if resource.spec.source.model_hub is not None:
        yield resource.spec.source.model_hub


def hub_model_named(resource: OpenModel) -> Iterator[Finding]:
    """A hub holds many models."""
    for hub in _hub(resource):
        if not hub.model_id:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{_HUB}.modelID",
                message="doesn't say which model of the hub",
                remedy="add modelID, e.g. facebook/opt-125m",
            )


def filename_alone(resource: OpenModel) -> Iterator[Finding]:
    """One file is named, or many are matched."""
    for hub in _hub(resource):
        patterns = {"allowPatterns": hub.allow_patterns, "ignorePatterns": hub.ignore_patterns}
        for field, value in patterns.items():
            if hub.filename is not None and value is not None:
                yield Finding(
                    field=f"{_HUB}.{field}",
                    message="can't be used together with filename",
                    value=", ".join(value),
                    remedy="keep filename or the patterns",
                )


def filename_on_huggingface(resource: OpenModel) -> Iterator[Finding]:
    """ModelScope models are loaded as a whole."""
    for hub in _hub(resource):
        if hub.filename is not None and hub.name is ModelHubName.MODEL_SCOPE:
            yield Finding(
                field=f"{_HUB}.filename",
                message="ModelScope models can't be loaded by file name",
                value=hub.filename,
                remedy="use allowPatterns, or Huggingface",
            )


def uri_readable(resource: OpenModel) -> Iterator[Finding]:
    """The uri names a place of a kind that llmaz knows."""
    uri = resource.spec.source.uri
    fault = _uri_fault(uri) if uri is not None else None
    if fault is not None:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.source.uri",
            message=fault,
            value=uri,
            remedy="e.g. oss://bucket.endpoint/path, s3://bucket/path or host:///path",
        )


def _uri_fault(uri: str) -> str | None:
    if uri.count("://") != 1:
        return "should be <scheme>://<address> with exactly one ://"
    try:
        source = parse_model_uri(uri)
    except ProblemsError as error:
        return error.problems[0].message
    if source.scheme not in URI_SCHEMES:
        known = ", ".join(sorted(URI_SCHEMES))
        return f"the scheme {source.scheme.value!r} is not one of {known}"
    if source.scheme in _BUCKETS and "/" not in source.address:
        return "the path in the bucket is missing"
    return None


def flavors_distinct(resource: OpenModel) -> Iterator[Finding]:
    """A flavor is claimed by name."""
    config = resource.spec.inference_config
    flavors = config.flavors if config is not None else []
    path = "spec.inferenceConfig.flavors"
    return repeated_names(
        ((f"{path}[{index}].name", flavor.name) for index, flavor in enumerate(flavors)), "flavor"
    )


def family_is_label(resource: OpenModel) -> Iterator[Finding]:
    """The family becomes the value of a label."""
    if not is_label_value(resource.spec.family_name):
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.familyName",
            message="becomes the value of a label and can't be one",
            value=resource.spec.family_name,
            remedy=LABEL_VALUE_REMEDY,
        )


def created_at_is_time(resource: OpenModel) -> Iterator[Finding]:
    """createdAt is RFC 3339."""
    created = resource.spec.created_at
    if created is None:
        return
    try:
        valid = datetime.fromisoformat(created).tzinfo is not None
    except ValueError:
        valid = False
    if not valid:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.createdAt",
            message="is no time with a zone",
            value=created,
            remedy="write e.g. 2026-01-31T12:00:00Z, or leave it out",
        )


RULES: tuple[Rule, ...] = (
    error("LZ-T03", "llmaz 1.6", "labels and pod names hold it", name_is_label),
    error("LZ-T04", "llmaz 1.1", "there is nothing to load", has_source),
    error("LZ-ID", "llmaz 1.1", "there is nothing to load", hub_model_named),
    error("LZ-T05", "llmaz 1.1, 3.1", "there is nothing to load", uri_readable),
    accepted("LZ-GS", "llmaz 3.1", "gs:// is what everybody calls gcs://"),
    error("LZ-T08", "llmaz 1.1", "they contradict each other", filename_alone),
    error("LZ-T09", "llmaz 1.1", "the hub can't do it", filename_on_huggingface),
    error("LZ-FLAVORS", "llmaz 1.1", "claims couldn't tell them apart", flavors_distinct),
    error("LZ-FAMILY", "llmaz 1.6", "the label couldn't be set", family_is_label),
    error("LZ-CREATED", "llmaz 1.1", "it isn't a time", created_at_is_time),
)
