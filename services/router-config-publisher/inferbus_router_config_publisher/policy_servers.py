"""All ModelServers, joined with the pods they select.

Invariant: what is told about a server is a function of the last facts alone; a change of one pod
costs as much as the servers that select it.
"""

from collections.abc import Mapping

from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.networking import ModelServer
from inferbus_router_config_publisher.policy_endpoints import ServerView, server_view
from inferbus_router_config_publisher.policy_objects import Stored
from inferbus_router_config_publisher.policy_pods import ServingPod, serving_pods
from inferbus_router_config_publisher.policy_selection import Item, Labels, Selection


class Servers:
    """Servers, pods and the templates that pods are made from."""

    def __init__(self) -> None:
        self.stored: dict[ObjectKey, Stored[ModelServer]] = {}
        self._pods: dict[ObjectKey, dict[str, ServingPod]] = {}
        self._templates: dict[ObjectKey, frozenset[str]] = {}
        self._selection = Selection()
        self._views: dict[ObjectKey, ServerView] = {}
        self._further_ports: dict[ObjectKey, tuple[int, ...]] = {}

    def view(self, key: ObjectKey) -> ServerView | None:
        """A server with its endpoints; None when it doesn't exist or can't be read."""
        stored = self.stored.get(key)
        if stored is None or stored.resource is None:
            return None
        view = self._views.get(key)
        if view is None:
            members = self._selection.members(key)
            view = self._views[key] = server_view(
                stored.resource,
                [self._pods[item.workload][item.name] for item in members if not item.is_template],
                [item.workload for item in members if item.is_template],
                self._further_ports.get(key, ()),
            )
        return view

    def set_server(
        self,
        key: ObjectKey,
        stored: Stored[ModelServer] | None,
        further_ports: tuple[int, ...] = (),
    ) -> None:
        """A server is now like this, on these ports too; None: it is gone."""
        self._further_ports.pop(key, None)
        if further_ports:
            self._further_ports[key] = further_ports
        if stored is None:
            self.stored.pop(key, None)
        else:
            self.stored[key] = stored
        resource = stored.resource if stored else None
        labels = resource.spec.workload_selector.match_labels if resource else None
        self._selection.set_selector(key, labels)
        self._views.pop(key, None)

    def set_templates(
        self, workload: ObjectKey, templates: Mapping[str, Labels]
    ) -> frozenset[ObjectKey]:
        """A workload makes its pods with these labels, by role; returns the servers concerned."""
        concerned: set[ObjectKey] = set()
        for role in self._templates.pop(workload, frozenset()) | templates.keys():
            item = Item(workload, role, is_template=True)
            before = self._selection.selectors_of(item)
            concerned |= before ^ self._selection.set_item(item, templates.get(role))
        if templates:
            self._templates[workload] = frozenset(templates)
        return self._looked_again(concerned)

    def set_pods(
        self, workload: ObjectKey, observed: WorkloadObserved
    ) -> tuple[frozenset[ObjectKey], bool]:
        """A workload has these pods now.

        Returns the servers concerned, and whether an endpoint that took requests no longer does.
        """
        before, after = self._pods.pop(workload, {}), serving_pods(workload, observed)
        if after:
            self._pods[workload] = after
        concerned: set[ObjectKey] = set()
        lost = False
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            item = Item(workload, name)
            servers_before = self._selection.selectors_of(item)
            servers = self._selection.set_item(item, new.labels if new else None)
            concerned |= servers_before | servers
            lost = lost or _is_lost(old, new, servers_before, servers)
        return self._looked_again(concerned), lost

    def _looked_again(self, concerned: set[ObjectKey]) -> frozenset[ObjectKey]:
        for key in concerned:
            self._views.pop(key, None)
        return frozenset(concerned)


def _is_lost(
    old: ServingPod | None,
    new: ServingPod | None,
    servers_before: frozenset[ObjectKey],
    servers: frozenset[ObjectKey],
) -> bool:
    if old is None or not old.available or not servers_before:
        return False
    stays = new is not None and new.available and new.address == old.address
    return not stays or not servers_before <= servers
