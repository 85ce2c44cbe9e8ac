"""One module a command; each defines `command`, which the group imports when it is asked for."""
