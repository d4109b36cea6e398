"""What a test can make happen to a cluster: plain functions on its state, one module a subject.

`Controls` lists them all as methods of the cluster.
"""
