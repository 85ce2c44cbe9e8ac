"""What comes with the platform: engines that Playgrounds can name without declaring them.

Invariant: each entry is an admitted BackendRuntime; an object of the same name in the store wins.
"""

from inferbus_spec_watcher.builtin.runtimes import BUILT_IN_RUNTIMES

__all__ = ["BUILT_IN_RUNTIMES"]
