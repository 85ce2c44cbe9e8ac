"""Creating, replacing, patching and applying objects: every write ends here.

Nothing in it waits, so that within one event loop each write is atomic, as a write to etcd is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.kubernetes import definitions, managed, metadata
from tests.fakes.kubernetes.catalog import BUILT_INS, Catalog, Resource
from tests.fakes.kubernetes.defaults import fill_built_in, structured
from tests.fakes.kubernetes.managed import Writer
from tests.fakes.kubernetes.status import (
    ApiError,
    already_exists,
    conflict,
    invalid,
    not_found,
    terminating,
)
from tests.fakes.kubernetes.store import Store, Stored, stored
from tests.fakes.kubernetes.validation import faults

Document = dict[str, Any]

NAMESPACES = next(resource for resource in BUILT_INS if resource.plural == "namespaces")
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about."""

    resource: Resource
    namespace: str
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How a write is to be made: by which manager, for real or not, against conflicts or not."""

    manager: str = "unknown"
    dry_run: bool = False
    force: bool = False

    def writer(self, target: Target, operation: str = "Update") -> Writer:
        return Writer(self.manager, operation, target.resource.api_version, target.subresource)


class Api:
    """The server's rules over a store and a catalog."""

    def __init__(self) -> None:
        self.store = Store()
        self.catalog = Catalog()
        self._addresses = 0
        for name in FIRST_NAMESPACES:
            self.create(Target(NAMESPACES, ""), {"metadata": {"name": name}}, Options())

    def get(self, target: Target) -> Stored:
        found = self.store.get(target.resource, target.namespace, target.name)
        if found is None:
            raise not_found(target.resource.group, target.resource.plural, target.name)
        return found

    def create(self, target: Target, document: Document, options: Options) -> Stored:
        """Store a new object. Raises 404 for its namespace, 409 when there is one of that name."""
        resource = target.resource
        metadata.begin(resource, target.namespace, document)
        self._check_namespace(target, document["metadata"]["name"])
        document = self._prepared(resource, document, None)
        writer = options.writer(target)
        document["metadata"]["managedFields"] = managed.after_update(
            None, document, writer, resource.shape, metadata.timestamp()
        )
        return self._add(target, document, options)

    def update(
        self, target: Target, make: Callable[[Document], Document], options: Options, *, whole: bool
    ) -> Stored:
        """Replace an object by what `make` makes of a copy of it.

        `whole`: the new object is the client's own (PUT), not a patched copy.
        """
        resource = target.resource
        before = self.get(target)
        old, new = before.document(resource), make(before.document(resource))
        metadata.carry_over(resource, old, new, whole=whole)
        new = self._prepared(resource, _confined(target, old, new), old)
        new["metadata"]["managedFields"] = managed.after_update(
            old, new, options.writer(target), resource.shape, metadata.timestamp()
        )
        return self._replace(target, before, old, new, options)

    def apply(self, target: Target, config: Document, options: Options) -> tuple[Stored, bool]:
        """Server-side apply; answers the object and whether it is new."""
        resource = target.resource
        meta = config.setdefault("metadata", {})
        if meta.get("managedFields"):
            raise ApiError(400, "metadata.managedFields must be nil")
        if not config.get("apiVersion") or not config.get("kind"):
            raise ApiError(400, "invalid object type: /, Kind=")
        metadata.check_type(resource, config)
        metadata.check_namespace(resource, target.namespace, meta)
        if not meta.get("name"):
            because = "was undeterminable: name must be provided"
            raise ApiError(400, f"the name of the object ({target.name} based on URL) {because}")
        config = _confined_config(target, config)
        before = self.store.get(resource, target.namespace, target.name)
        writer, now = options.writer(target, "Apply"), metadata.timestamp()
        if before is None:
            return self._apply_new(target, config, options), True
        old = before.document(resource)
        new, entries = managed.applied(
            before.document(resource), config, writer, resource.shape, now, force=options.force
        )
        metadata.carry_over(resource, old, new, whole=False)
        new = self._prepared(resource, _confined(target, old, new), old)
        new["metadata"]["managedFields"] = entries
        return self._replace(target, before, old, new, options), False

    def _apply_new(self, target: Target, config: Document, options: Options) -> Stored:
        resource = target.resource
        if target.subresource:
            raise not_found(resource.group, resource.plural, target.name)
        if uid := config["metadata"].get("uid"):
            because = (
                f"uid mismatch: the provided object specified uid {uid}, and no existing object was"
                " found"
            )
            raise conflict(resource.group, resource.plural, target.name, because)
        writer, now = options.writer(target, "Apply"), metadata.timestamp()
        document, entries = managed.applied(None, config, writer, resource.shape, now, force=True)
        metadata.begin(resource, target.namespace, document)
        self._check_namespace(target, target.name)
        document = self._prepared(resource, document, None)
        document["metadata"]["managedFields"] = entries
        return self._add(target, document, options)

    def _check_namespace(self, target: Target, name: str) -> None:
        if not target.resource.namespaced:
            return
        namespace = self.store.get(NAMESPACES, "", target.namespace)
        if namespace is None:
            raise not_found("", "namespaces", target.namespace)
        if "status.phase" in namespace.fields and namespace.fields["status.phase"] != "Active":
            raise terminating(target.resource.group, target.resource.plural, target.namespace, name)

    def _prepared(self, resource: Resource, new: Document, old: Document | None) -> Document:
        """Defaulted, pruned, with what only the server decides."""
        new["metadata"] = metadata.without_empty(new["metadata"])
        if resource.custom:
            if resource.status and old is None:
                new.pop("status", None)
            return _valid(resource, structured(new, resource.schema))
        if old is None and resource.status:
            new.pop("status", None)
        self._built_in(resource, new, old)
        fill_built_in(resource.kind, new)
        for name in resource.immutable if old is not None else ():
            if old is not None and old.get(name) != new.get(name):
                causes = [("FieldValueInvalid", name, "Invalid value: field is immutable")]
                raise invalid(resource.group, resource.kind, new["metadata"]["name"], causes)
        return new

    def _built_in(self, resource: Resource, new: Document, old: Document | None) -> None:
        if resource.kind == "Pod" and old is None:
            new["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        elif resource.kind == "Namespace" and old is None:
            name = new["metadata"]["name"]
            new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
            new["spec"], new["status"] = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
        elif resource.kind == "Service":
            if old is None:
                new["status"] = {"loadBalancer": {}}
            spec = new.setdefault("spec", {})
            if not spec.get("clusterIP"):
                spec["clusterIP"] = (old or {}).get("spec", {}).get("clusterIP") or self._address()
        elif resource.kind == "CustomResourceDefinition":
            definitions.establish(new)

    def _address(self) -> str:
        self._addresses += 1
        high, low = divmod(self._addresses, 256)
        return f"10.96.{high}.{low}"

    def _add(self, target: Target, document: Document, options: Options) -> Stored:
        resource, name = target.resource, document["metadata"]["name"]
        if self.store.get(resource, target.namespace, name) is not None:
            raise already_exists(resource.group, resource.plural, name)
        if options.dry_run:
            return stored(resource, document, 0)
        new = self.store.put(resource, document, None)
        definitions.follow(self.catalog, resource, document)
        return new

    def _replace(
        self, target: Target, before: Stored, old: Document, new: Document, options: Options
    ) -> Stored:
        """Store the new state; what changes nothing is not written, as the server does it."""
        resource = target.resource
        if target.subresource != "binding":
            metadata.raise_generation(resource, old, new)
        if new == old:
            return before
        if options.dry_run:
            return stored(resource, new, before.revision)
        if gone(new):
            self.remove(resource, before)
            return stored(resource, new, before.revision)
        after = self.store.put(resource, new, before)
        definitions.follow(self.catalog, resource, new)
        return after

    def remove(self, resource: Resource, old: Stored) -> Stored:
        """Take an object out of the store, with what goes with it."""
        last = self.store.remove(resource, old)
        if resource.kind == "CustomResourceDefinition":
            definitions.withdraw(self.catalog, self.store, old.document(resource))
        elif old.namespace and resource.namespaced:
            self._finish_namespace(old.namespace)
        return last

    def _finish_namespace(self, name: str) -> None:
        """A namespace that is being deleted goes with the last of its content."""
        namespace = self.store.get(NAMESPACES, "", name)
        if namespace is not None and namespace.fields["status.phase"] == "Terminating":
            self.empty_namespace(namespace)

    def empty_namespace(self, namespace: Stored) -> None:
        """Remove a terminating namespace, unless finalizers hold something in it."""
        for resource in self.catalog.namespaced():
            for namespace_name, _ in self.store.collection(resource).objects:
                if namespace_name == namespace.name:
                    return
        self.store.remove(NAMESPACES, namespace)


def gone(document: Document) -> bool:
    """Whether nothing holds an object that is being deleted any longer."""
    meta = document["metadata"]
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )


def _valid(resource: Resource, document: Document) -> Document:
    """`document`, if its schema allows it; 422 with every cause if not."""
    causes = list(faults(document, resource.schema))
    if causes:
        raise invalid(resource.group, resource.kind, document["metadata"]["name"], causes)
    return document


def _confined(target: Target, old: Document, new: Document) -> Document:
    """Only what the endpoint may change: the status through its subresource, all else without."""
    resource = target.resource
    if target.subresource == "status":
        if resource.custom:
            kept = {**old, "metadata": dict(old["metadata"])}
        else:
            kept = {**old, "metadata": {**new["metadata"]}}
            kept["metadata"].pop("ownerReferences", None)
            if "ownerReferences" in old["metadata"]:
                kept["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
        kept.pop("status", None)
        return {**kept, "status": new["status"]} if "status" in new else kept
    if resource.status:
        new.pop("status", None)
        return {**new, "status": old["status"]} if "status" in old else new
    return new


def _confined_config(target: Target, config: Document) -> Document:
    if target.subresource == "status":
        meta = {
            name: value
            for name, value in config["metadata"].items()
            if name in ("name", "namespace", "uid", "resourceVersion")
        }
        status = {"status": config["status"]} if "status" in config else {}
        return {
            "apiVersion": config["apiVersion"],
            "kind": config["kind"],
            "metadata": meta,
            **status,
        }
    if target.resource.status:
        config.pop("status", None)
    return config
