"""The main job on real input: the flights of 2013 through three brokers, a consumer group and Spark, into Parquet.

    python -m demo --help

Spark's workers and the members of the group are processes of their own; everything that is started is ended.
"""
