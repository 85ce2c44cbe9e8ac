"""The last facts about mixes and orders, folded from the bus."""

from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.control import Order
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.resources.annotations import compat_of
from inferbus_contracts.scaling.intents import ScalingIntent
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_optimizer.facts import DeciderSettings, Facts, PolicyFacts


class FactFold:
    """What the core may look at, by key."""

    def __init__(self, settings: DeciderSettings) -> None:
        self._settings = settings
        self._policies = PolicyObjects()
        self._orders = Orders()

    def take(self, key: ObjectKey, data: EventData, time_ms: int) -> None:
        """Fold one fact in."""
        if isinstance(data, Order):
            self._orders.take(key, data, time_ms)
        elif isinstance(data, SpecChanged):
            self._policies.take(key, data)

    def state_key(self, key: ObjectKey) -> ObjectKey | None:
        """The mix that an event about `key` concerns; None: no mix has that target."""
        intent = self._intent(key)
        return intent.owner.key if intent else None

    def facts(self, state_key: ObjectKey, decision_id: str, now_ms: int) -> Facts:
        """Everything about one mix."""
        intent = self._intent(state_key)
        if intent is None:
            return Facts(policy=None, settings=self._settings)
        policies = (intent.owner.key, intent.policy.key)
        targets = (item.key for item in intent.targets)
        frozen = (key for key in targets if self._orders.freeze(key, now_ms, policies))
        return Facts(
            policy=PolicyFacts(
                key=str(intent.owner.key),
                uid=intent.owner.uid,
                digest=digest([intent.identity, intent.body.to_dict()]),
                compat=compat_of(intent.annotations) is not None,
            ),
            frozen=tuple(str(key) for key in frozen),
            decision_id=decision_id,
            settings=self._settings,
        )

    def _intent(self, key: ObjectKey) -> ScalingIntent | None:
        settled = self._policies.settled
        intent = settled.mixes.get(key) or settled.owners.get(key)
        return intent if intent and intent.mix else None
