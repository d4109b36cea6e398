"""Jobs that land in a table, under faults that a seed draws, on a virtual clock.

    scheduler.py    threads of blocking code, one at a time, in an order that the seed decides
    topic.py        the logs that a job reads, and the client and lookups that its stream asks
    storage.py      the table and its data files, in memory, with the faults of a catalog
    bucket.py       the object store of checkpoint and manifests, below the real `ObjectStore`, with its faults
    job.py          one process with one run of a job: the real loop, checkpoint, file names and commit rules
    plan.py         what a seed draws
    world.py        a run of a plan: chaos, then everything heals, then the job must drain
    check.py        the invariants I-46 to I-52
    connect_bugs.py the published bugs of Kafka Connect's Iceberg sink as plans, and plans for rare things

Real are `preflight`, `resume`, `engine_direct`, `Stream`, `Checkpoint`, `RunEpoch`, `BatchCommitter`, `tables.commit`,
manifests and the names of files; simulated are Kafka, the Parquet encoder, the table format and its services.
"""
