"""The plugin lora-affinity: only endpoints that have the model loaded (routing spec 3.3).

Invariant: it compares the name that engines know, so that a model server that renames its model
isn't emptied by it (the reference's defect 11), and an engine whose list isn't known stays in.
"""

from inferbus_router.policy_plugins import Candidate, PluginRequest


class LoraAffinity:
    """Leaves out engines that say they don't serve the model or adapter."""

    name = "lora-affinity"

    def keeps(self, request: PluginRequest, candidate: Candidate) -> bool:
        """See `FilterPlugin`."""
        models = candidate.engine.models
        return models is None or request.model in models
