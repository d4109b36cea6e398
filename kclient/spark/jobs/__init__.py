"""Jobs on top of the source: what `kclient ingest` and `kclient offsets-history` run. No command line in here."""
