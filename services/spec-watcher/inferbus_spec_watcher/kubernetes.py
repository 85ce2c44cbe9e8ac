"""The Kubernetes substrate: objects on the API server, which collects garbage itself."""

from collections.abc import Mapping
from dataclasses import replace

from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.service import Runtime
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.metrics import KubeMetrics
from inferbus_shared.kube.settings import KubeSettings
from inferbus_spec_watcher.kubernetes_applier import KubernetesHand
from inferbus_spec_watcher.kubernetes_groups import GroupsWatch
from inferbus_spec_watcher.kubernetes_refusals import Refusals
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.kubernetes_upkeep import Upkeep
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.parts import Parts
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_spec_watcher.surroundings import Surroundings


async def on_kubernetes(
    runtime: Runtime[SpecWatcherSettings],
    kube: KubeSettings,
    rejections: Rejections,
    membership: Membership,
) -> Parts:
    """The parts over the API server that `kube` names; it is left when the service stops.

    Raises `ProblemsError` (BAD_SETTING) where the settings name no way in.
    """
    client = KubeClient(kube, metrics=KubeMetrics(runtime.service, runtime.registry))
    await client.__aenter__()
    runtime.on_stop(lambda: client.__aexit__(None, None, None))
    expansion = runtime.settings.expansion
    store = KubernetesStore(
        client,
        configuration=(expansion.booster_configuration, expansion.llmaz_configuration),
    )
    runtime.requires(lambda: _missing(store))
    ownership = Ownership(store)
    policies = Policies(store)
    hand = KubernetesHand(client, store, policies)
    upkeep = Upkeep(store, hand, membership, runtime.bus.clock)
    refusals = Refusals(store, rejections, membership)
    surroundings = Surroundings(replace(expansion, groups=None))
    groups = GroupsWatch(client, store, runtime.settings, surroundings)
    runtime.requires(
        lambda: {"kind of groups": str(groups.problem)} if groups.problem is not None else {}
    )
    companions = {"upkeep": upkeep.run, "refusals": refusals.run, "kind of groups": groups.run}
    return Parts(store, ownership, policies, hand, surroundings, companions)


def _missing(store: KubernetesStore) -> Mapping[str, str]:
    return {f"kind {kind}": str(problem) for kind, problem in store.problems.items()}
