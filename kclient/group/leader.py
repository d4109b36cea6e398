"""`make_plan`, by which the author of an assignor tries it out as a group's leader would run it."""

from kclient.group.classic.leader import make_plan

__all__ = ["make_plan"]
