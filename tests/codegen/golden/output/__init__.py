"""Codecs of all messages, written by `python -m codegen` from `schemas/`; edits here are lost."""
