"""Expansion: one short object to its children, as a pure function.

What a ModelBooster, a Playground or an inference Service stands for is decided here and nowhere
else (DESIGN section 6). Invariant: equal objects give equal children, byte for byte, and every
child is admitted.
"""

from inferbus_spec_watcher.expansion.dispatch import expand
from inferbus_spec_watcher.expansion.result import Expansion, Lookup
from inferbus_spec_watcher.expansion.settings import ExpansionSettings

__all__ = ["Expansion", "ExpansionSettings", "Lookup", "expand"]
