"""A real S3 API on loopback for tests: S3Proxy in a JVM, with a directory for its objects.

    with S3Server() as s3:
        s3.create_bucket("lake")
        os.environ.update(s3.environment)      # s3://lake/… for any client that reads AWS_*

It needs Java 17 and, the first time, mvn. Nothing here imports kclient: what judges it must not be made of it.

What its conditional writes do, found by trying (`tests/spark/test_store_s3.py` runs the first column again):

| request | S3Proxy 4.1.0 | 2.6.0 |
|---|---|---|
| PUT `If-None-Match: *`, 8 at once on one key | one 200, seven 412 | eight 200: the header is ignored |
| CompleteMultipartUpload `If-None-Match: *` on a key that exists | 412 | 200, it is replaced |
| PUT `If-Match` with another ETag | 412 | 200, it is replaced |
| DeleteObjects with a CRC-64 or SHA-256 checksum | 200 | 501 |
| PUT or GET in a bucket that does not exist | 404 NoSuchBucket | the same |
"""

from __future__ import annotations

from locals3.server import S3Server, unavailable

__all__ = ["S3Server", "unavailable"]
