"""The platform on one machine: its folder, its processes, and who keeps them running."""
