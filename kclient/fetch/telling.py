"""What the fetch room writes to the log: finer than DEBUG for every piece of data, and a lasting fault now and then.

TRACE     partitions that a Fetch asks for, data that were fetched, records that were handed out
DEBUG     data that were dropped and why, requests that failed
INFO      a position out of range, and where it goes on
WARNING   what may not be read, and errors that say nothing: once in ten seconds for each (`ThrottledLogger`)
"""

from __future__ import annotations

from typing import Final

TRACE: Final = 5
