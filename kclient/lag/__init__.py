"""How far groups are behind the ends of their partitions: `kclient.group.lag` and `python -m kclient lag`.

It stands above `group` and `positions`, which know nothing of each other: what is committed it learns from the one,
what can be read from the other.
"""
