"""The engine's sidecar: normalised metrics, adapters, drain, health."""
