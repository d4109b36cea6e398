"""Jobs that land in a table, under faults that a seed draws, on a virtual clock.

    scheduler.py    threads of blocking code, one at a time, in an order that the seed decides
    topic.py        the logs that a job reads, and the client and lookups that its stream asks
    storage.py      the table and the data files, in memory, with the faults of a catalog and of an object store
    job.py          one process with one run of a job: the real loop, checkpoint, file names and commit rules
    plan.py         what a seed draws
    world.py        a run of a plan: chaos, then everything heals, then the job must drain
    check.py        the invariants I-46 to I-50
    connect_bugs.py the published bugs of Kafka Connect's Iceberg sink as plans

Real are `engine_direct`, `Stream`, `Checkpoint`, `table_position`, `BatchCommitter`, `tables.commit` and the names of
files; simulated are Kafka, the Parquet encoder, the table format and its services.
"""
