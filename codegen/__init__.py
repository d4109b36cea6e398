"""Compiles the JSON message schemas in `schemas/` into the Python modules of `generated/`."""
