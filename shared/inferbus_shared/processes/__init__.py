"""Processes on one machine: who they are, how they start, and how they are found again.

Everything here works without being anybody's parent, because every parent may be killed: a process
is known by its identity file, guarded by a lock it holds itself, and watched through a pidfd. Linux
only.
"""
