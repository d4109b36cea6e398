"""Every message: its module, what it is, its versions. The modules themselves are imported when first needed.

Generated from schemas/*.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

# name → module, type, API key (or record type), lowest and highest version, first flexible version
MESSAGES: dict[str, tuple[str, str, int | None, int, int, int | None]] = {
    "DepotKey": ("depot_key", "data", None, 0, 0, None),
    "ParcelRequest": ("parcel_request", "request", 4711, 0, 5, 2),
}
