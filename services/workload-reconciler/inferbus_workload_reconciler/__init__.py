"""Plans and drives groups, roles and pods; the only actuator of decisions."""
