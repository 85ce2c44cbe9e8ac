"""Which target of a rule a request goes to: smooth weighted round robin.

Deterministic instead of random (routing spec, defect 23), and drawn only among targets that can
serve, so that a dead canary's share goes to the others (defect 24). Invariant: over a cycle in
which the eligible targets don't change, each gets exactly its weight's share.
"""

from collections.abc import Sequence


class SmoothWeights:
    """The position in the cycle of one rule; the algorithm is nginx's smooth weighted round
    robin.
    """

    __slots__ = ("_credits", "_weights")

    def __init__(self, weights: Sequence[int]) -> None:
        """`weights` are at least 0 and not all 0."""
        self._weights = tuple(weights)
        self._credits = [0] * len(weights)

    def draw(self, eligible: Sequence[bool]) -> int | None:
        """Index of the next target among those marked; None when none with a weight is.

        Equal credits go to the earlier target.
        """
        total = 0
        best: int | None = None
        for index, weight in enumerate(self._weights):
            if not weight or not eligible[index]:
                continue
            total += weight
            self._credits[index] += weight
            if best is None or self._credits[index] > self._credits[best]:
                best = index
        if best is not None:
            self._credits[best] -= total
        return best
