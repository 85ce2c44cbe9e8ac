"""Rules of names, labels and annotations: what breaks them, and what comes close."""

BROKEN = [
    ("META-NAME", "Pod", {"metadata.name": "Upper"}, "metadata.name"),
    ("META-NAME", "Pod", {"metadata.namespace": "a.b"}, "metadata.namespace"),
    ("META-LABELS", "Pod", {"metadata.labels": {"a b": "x"}}, 'metadata.labels["a b"]'),
    ("META-LABELS", "Pod", {"metadata.labels": {"a": "x y"}}, "metadata.labels.a"),
    ("META-ANNOTATIONS", "Pod", {"metadata.annotations": {"/": ""}}, 'metadata.annotations["/"]'),
    (
        "OWN-ANNOTATION-VALUE",
        "Playground",
        {"metadata.annotations": {"inferbus.dev/mode": "manual"}},
        'metadata.annotations["inferbus.dev/mode"]',
    ),
    (
        "OWN-ANNOTATION-NAME",
        "Playground",
        {"metadata.annotations": {"inferbus.dev/objectives": "x"}},
        'metadata.annotations["inferbus.dev/objectives"]',
    ),
]
"""(rule, kind, changes, field that is told)."""

FINE = [
    ("Pod", {"metadata.annotations": {"Example.com/Key": "any\ntext"}}),
]
"""(kind, changes)."""
