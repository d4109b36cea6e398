"""The main job on real input: the flights of 2013 through three brokers to a group, and to Spark as Parquet.

    python -m demo --help

    run.py         the whole, and the five numbers      recording.py   what happened, as it is kept in run.json
    brokers.py     ours, or a real Kafka                chronicle.py   tells it while it happens
    publish.py     flights → topic                      sampling.py    asks the brokers for lags meanwhile
    group.py       two members, one of them killed      report/        draws it: one page, no network
    pipeline.py    the ingest job, killed as well       terminal.py    the same in lines
    asking.py      what landed, in SQL

Members, job and SQL session are processes of their own; everything that is started is ended.
"""
