"""Events, resources, subjects and topology: what every Inferbus service agrees on.

The package is pure, apart from the commands that keep what is published current: no I/O, no clock,
no randomness. Everything that crosses a process boundary is typed here, and everything that must
agree between two services is derived from one table here.
"""

__version__ = "0.1.0"
