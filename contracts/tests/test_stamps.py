from inferbus_contracts.admission import stamped_labels, stamps

NOON_MS = 1_769_860_800_999


def test_a_model_gets_its_family_label_and_its_time(admitted) -> None:
    assert stamps(admitted("OpenModel").resource, NOON_MS) == {
        "metadata": {"labels": {"llmaz.io/model-family-name": "opt"}},
        "spec": {"createdAt": "2026-01-31T12:00:00Z"},
    }


def test_a_time_that_is_there_stays(admitted) -> None:
    model = admitted("OpenModel", {"spec.createdAt": "2020-01-01T00:00:00Z"}).resource
    assert "spec" not in stamps(model, NOON_MS)


def test_a_playground_gets_the_label_of_its_main_model(admitted) -> None:
    claims = [{"name": "d", "role": "draft"}, {"name": "m"}]
    changes = {
        "spec.modelClaim": ...,
        "spec.modelClaims.models": claims,
        "metadata.labels": {"llmaz.io/model-name": "other"},
    }
    assert stamped_labels(admitted("Playground", changes).resource) == {"llmaz.io/model-name": "m"}


def test_other_kinds_get_nothing(admitted) -> None:
    for token in ("Service", "BackendRuntime", "ModelBooster", "Pod"):
        assert stamps(admitted(token).resource, NOON_MS) == {}
