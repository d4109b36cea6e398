"""The demo: the flights of 2013 through three brokers to a group, and to Spark as Parquet.

    python -m demo --help

    run.py         the sequence, and the five numbers   recording.py   the events of a run, stored in run.json
    brokers.py     embedded brokers, or a real Kafka    recorder.py    writes events to terminal and recording
    publish.py     flights → topic                      sampling.py    samples the lag of groups
    group.py       two members, one of them killed      report/        an HTML page with charts
    pipeline.py    the ingest job, killed as well       terminal.py    output on the terminal
    query_process.py  queries the written files      measures.py    consumed offsets, stalls

Members, job and SQL session are child processes, which the demo ends.
"""
