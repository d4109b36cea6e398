"""The methods by which a test controls a cluster, one mixin of `EmbeddedCluster` for each subject.

They may be called from any thread, also on the cluster's own loop, where `restart` and `heal`, which take time, return
a task.
"""
