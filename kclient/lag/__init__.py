"""The lag of consumer groups: `kclient.group.lag`, `kclient.group.lag_async` and `python -m kclient lag`.

Uses `group` for the committed offsets and `positions` for the ends of the logs; these do not import each other.
"""
