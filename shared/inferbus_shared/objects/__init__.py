"""The objects of the process substrate: a picture of them, and asking for changes."""
