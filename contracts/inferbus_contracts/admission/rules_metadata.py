"""Rules about names, labels and annotations, the same for every kind.

Kubernetes refuses what breaks the syntax rules, and labels that can't be set can't be selected, so
these are errors on every substrate.
"""

import difflib
from collections.abc import Iterator

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources import annotations as own
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.names import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_label_key,
    is_label_value,
)

LABEL_VALUE_REMEDY = (
    "use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)


def name_syntax(resource: Resource) -> Iterator[Finding]:
    """The object's name and namespace."""
    metadata = resource.metadata
    if not is_dns1123_subdomain(metadata.name):
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field="metadata.name",
            message="the name can't be the name of an object",
            value=metadata.name,
            remedy="use at most 253 lower-case letters, digits, '-' and '.', beginning and ending "
            "with a letter or digit",
        )
    if metadata.namespace is not None and not is_dns1123_label(metadata.namespace):
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field="metadata.namespace",
            message="this can't be the name of a namespace",
            value=metadata.namespace,
            remedy="use at most 63 lower-case letters, digits and '-'",
        )


def label_syntax(resource: Resource) -> Iterator[Finding]:
    """Keys and values of labels."""
    for key, value in resource.metadata.labels.items():
        field = child("metadata.labels", key)
        if not is_label_key(key):
            yield _bad_key(field, key)
        if not is_label_value(value):
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=field,
                message="this can't be the value of a label",
                value=value,
                remedy=LABEL_VALUE_REMEDY,
            )


def annotation_syntax(resource: Resource) -> Iterator[Finding]:
    """Keys of annotations; their values are free."""
    for key in resource.annotations:
        if not is_label_key(key.lower()):
            yield _bad_key(child("metadata.annotations", key), key)


def own_annotation_values(resource: Resource) -> Iterator[Finding]:
    """Values of the platform's own annotations."""
    for name, value in resource.annotations.items():
        wrong = own.problem_of(name, value)
        if wrong is not None:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=child("metadata.annotations", name),
                message=wrong,
                value=value,
                remedy="correct the value, or remove the annotation",
            )


def own_annotation_names(resource: Resource) -> Iterator[Finding]:
    """Names that look like a misspelt annotation of the platform."""
    for name in resource.annotations:
        if name.startswith(own.PREFIX) and name not in own.KNOWN:
            near = difflib.get_close_matches(name, own.KNOWN, n=1, cutoff=0.8)
            if near:
                yield Finding(
                    code=ErrorCode.UNKNOWN_FIELD,
                    field=child("metadata.annotations", name),
                    message="nothing reads this annotation",
                    remedy=f"did you mean {near[0]}?",
                )


def _bad_key(field: str, key: str) -> Finding:
    return Finding(
        code=ErrorCode.BAD_NAME,
        field=field,
        message="this can't be a key",
        value=key,
        remedy="use [prefix/]name, the name of at most 63 letters, digits, '-', '_' and '.'",
    )


RULES: tuple[Rule, ...] = (
    error("META-NAME", "Kubernetes object names", "no store can hold it", name_syntax),
    error("META-LABELS", "Kubernetes labels", "nothing could select it", label_syntax),
    error("META-ANNOTATIONS", "Kubernetes annotations", "Kubernetes refuses it", annotation_syntax),
    error(
        "OWN-ANNOTATION-VALUE",
        "design 6, annotations",
        "ignoring it would be a silent default",
        own_annotation_values,
    ),
    warning(
        "OWN-ANNOTATION-NAME",
        "design 6, annotations",
        "a later version may know it",
        own_annotation_names,
    ),
)
