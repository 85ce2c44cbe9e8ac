"""Who scales what."""
