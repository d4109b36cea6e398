"""How ranges are cut into tasks. Pure: the same ranges and options give the same pieces.

So a batch that runs again is cut as it was, and its files have the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from kclient.spark.plan import OffsetRange


def split(
    ranges: Iterable[OffsetRange],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """Pieces that cover the ranges exactly, disjoint and in order; empty ranges are dropped.

    First no piece may be larger than `max_records_per_partition`; then, if there are still fewer pieces than
    `min_partitions`, big ones are divided in proportion to their size, so that about that many come out.
    """
    pieces = sorted(piece for piece in ranges if piece.size)
    if max_records_per_partition is not None:
        most = max_records_per_partition
        pieces = [part for piece in pieces for part in _divide(piece, -(-piece.size // most))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    shares = _shares([piece.size for piece in pieces], min_partitions)
    return [part for piece, share in zip(pieces, shares, strict=True) for part in _divide(piece, share)]


def _shares(sizes: Sequence[int], wanted: int) -> list[int]:
    """How many tasks each range gets: those whose share rounds to one stay whole, the others share the rest."""
    total = sum(sizes)
    small = [_rounded(size * wanted, total) <= 1 for size in sizes]
    left = max(1, wanted - sum(small))
    large_total = sum(size for size, is_small in zip(sizes, small, strict=True) if not is_small)
    return [
        1 if is_small else max(1, _rounded(size * left, large_total))
        for size, is_small in zip(sizes, small, strict=True)
    ]


def _rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _divide(piece: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, piece.size)
    cuts = [piece.start + piece.size * part // parts for part in range(parts + 1)]
    return [attrs.evolve(piece, start=start, end=end) for start, end in pairwise(cuts)]
