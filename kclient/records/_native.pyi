def decode(
    data: bytes,
    position: int,
    count: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
    max_headers: int,
    /,
) -> tuple[int, int, int, int, bytes, bytes, bytes, bytes, bytes, bytes, bytes]: ...
