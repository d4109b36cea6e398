"""Edits that break the code on purpose, and the rows of the specification whose tests must notice each of them."""
