"""`build.py examine`: the atlas's probes on a reader's own model."""
