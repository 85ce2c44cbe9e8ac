"""Who controls whom, after any history of objects that come, change hands and go."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject, controller_uid
from inferbus_spec_watcher.ownership import Ownership, owner_of, owner_reference
from inferbus_spec_watcher.policy_garbage import orphans

LLMAZ = "inference.llmaz.io/v1alpha1"


class Picture:
    """The part of the store that ownership is kept beside."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, StoredObject] = {}
        self.listeners: list[Callable[[ObjectKey], None]] = []

    def get(self, key: ObjectKey) -> StoredObject | None:
        return self.objects.get(key)

    def on_change(self, listener: Callable[[ObjectKey], None]) -> None:
        self.listeners.append(listener)

    def put(self, key: ObjectKey, uid: str, owner: str | None) -> None:
        """Store a Service, controlled by the Playground whose uid and name are `owner`."""
        metadata: dict[str, Any] = {"name": key.name, "namespace": key.namespace, "uid": uid}
        if owner is not None:
            metadata["ownerReferences"] = [reference(owner)]
        body = {"apiVersion": LLMAZ, "kind": "Service", "metadata": metadata}
        self.objects[key] = StoredObject(body, 1)
        self.tell(key)

    def drop(self, key: ObjectKey) -> None:
        self.objects.pop(key, None)
        self.tell(key)

    def tell(self, key: ObjectKey) -> None:
        for listener in self.listeners:
            listener(key)


def reference(owner: str, **fields: Any) -> dict[str, Any]:
    named = {"apiVersion": LLMAZ, "kind": "Playground", "name": owner, "uid": owner}
    return {**named, "controller": True, **fields}


def watched() -> tuple[Picture, Ownership, list[ObjectKey]]:
    picture = Picture()
    ownership = Ownership(picture)  # type: ignore[arg-type]
    told: list[ObjectKey] = []
    ownership.on_child_change(told.append)
    return picture, ownership, told


CHILD = ObjectKey("Service", "default", "c")
names = st.sampled_from(["a", "b", "c"])
owners = st.sampled_from(["p", "q"]) | st.none()


@given(st.lists(st.tuples(names, owners, st.booleans())))
def test_children_are_those_whose_controller_has_the_uid(
    history: list[tuple[str, str | None, bool]],
) -> None:
    picture, ownership, _ = watched()
    for name, owner, goes in history:
        key = ObjectKey("Service", "default", name)
        if goes:
            picture.drop(key)
        else:
            picture.put(key, f"uid of {name}", owner)
        for uid in ("p", "q"):
            controlled = [
                one
                for one, stored in picture.objects.items()
                if controller_uid(stored.object) == uid
            ]
            assert ownership.children(uid) == tuple(sorted(controlled))


def test_an_owner_hears_of_each_change_and_of_the_last() -> None:
    picture, _, told = watched()
    owner = ObjectKey("Playground", "default", "p")
    picture.put(CHILD, "u", "p")
    picture.put(CHILD, "u", "p")
    picture.drop(CHILD)
    assert told == [owner] * 3
    picture.drop(CHILD)
    assert told == [owner] * 3


def test_when_a_child_changes_hands_both_hear_of_it() -> None:
    picture, _, told = watched()
    picture.put(CHILD, "u", "p")
    told.clear()
    picture.put(CHILD, "u", "q")
    assert sorted(key.name for key in told) == ["p", "q"]


def test_an_owner_of_an_unknown_kind_has_children_and_no_key() -> None:
    body = {"metadata": {"ownerReferences": [reference("x", apiVersion="apps/v1", kind="Other")]}}
    owner = owner_of(CHILD, body)
    assert owner is not None
    assert (owner.uid, owner.key) == ("x", None)


def test_references_without_a_controller_own_nothing() -> None:
    references = [reference("x", controller=False)]
    assert owner_of(CHILD, {"metadata": {"ownerReferences": references}}) is None
    assert owner_of(CHILD, {"metadata": {}}) is None


def test_a_cluster_scoped_owner_has_no_namespace() -> None:
    model = reference("m", apiVersion="llmaz.io/v1alpha1", kind="OpenModel")
    owner = owner_of(CHILD, {"metadata": {"ownerReferences": [model]}})
    assert owner is not None
    assert owner.key == ObjectKey("OpenModel", "_", "m")


def test_the_reference_that_is_made_is_the_one_that_is_read() -> None:
    parent = {
        "apiVersion": LLMAZ,
        "kind": "Playground",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    }
    owner = owner_of(CHILD, {"metadata": {"ownerReferences": [owner_reference(parent)]}})
    assert owner is not None
    assert (owner.uid, owner.key) == ("u", ObjectKey("Playground", "default", "p"))


@given(st.lists(st.tuples(names, owners)))
def test_orphans_are_those_whose_controller_is_gone_by_uid(
    objects: list[tuple[str, str | None]],
) -> None:
    picture = Picture()
    for name, owner in objects:
        picture.put(ObjectKey("Service", "default", name), "p" if name == "a" else name, owner)
    living = {stored.uid for stored in picture.objects.values()}
    found = orphans(picture.objects.items())
    for key, stored in picture.objects.items():
        owner = controller_uid(stored.object)
        assert (key in found) == bool(owner and owner not in living)
