"""Record batches of all formats: decoded into columns for the client, built for tests and tools.

    batch           headers of the batches in a records field; nothing is decompressed
    sections        one opened batch: checked, decompressed, ready to be decoded in pieces
    decoder         the interface of decoders of format 2
    decoder_python  the decoder in Python               runs     many records of the same shape at once
    legacy          messages of formats 0 and 1         varint   zig-zag varints
    compression     the codecs, with bounded output     aborted  aborted transactions (read_committed)
    reader          a fetched partition, read in pieces of at most so many records
    columns         decoded records                     records  what poll() returns
    headers         checked when a record is decoded, made into objects when they are read
    deserialize     the user's deserializers            undecodable  what happens to records that they reject
    arrow           a pyarrow.Table                     arrow_native  an Arrow stream made by the extension, no pyarrow
    arrow_columns   names and nulls of both             arrow_binary  keys and values made by pyarrow, without objects
    errors          errors of a batch with place and next step
    writer          builds batches of format 2

This package does not use sockets, tasks or clocks.
"""
