"""Fetch requests and sessions, the buffer of fetched data, and its decoding into the records that poll() returns."""
