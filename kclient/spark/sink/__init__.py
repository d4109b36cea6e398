"""The sinks of the ingest job: files, manifests and rows."""
