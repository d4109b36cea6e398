"""Record batches of every format: read into columns, written for tests and tools.

    batch       headers of the batches in a records field, one after the other, nothing decompressed
    sections    one batch opened: checked, decompressed, ready to be decoded bit by bit
    decoder     the hot loop of format 2        legacy      messages of formats 0 and 1
    compression the codecs, output bounded      aborted     which transactions were aborted (read_committed)
    reader      a fetched partition, taken in pieces of at most so many records
    records     what the user sees              arrow       the same as a pyarrow.Table
    headers     of a record: checked when it is decoded, made into objects when they are read
    writer      batches of format 2

Nothing here knows of sockets, tasks or clocks.
"""
