"""The ingest job: `kclient ingest` without the command line. Start with `run.py`."""
