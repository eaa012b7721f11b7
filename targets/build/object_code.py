"""What an object file puts into memory."""

from __future__ import annotations

import struct

_ELF = b"\x7fELF"
_SHF_ALLOC, _SHT_NOBITS = 0x2, 8
# Class and little-endian: where the table of sections is, its entries' size with their number, and a section.
_LAYOUTS = {
    b"\x01\x01": (("<I", 0x20), ("<HH", 0x2E), "<IIIII"),
    b"\x02\x01": (("<Q", 0x28), ("<HH", 0x3A), "<IQQQQ"),
}


def is_same_code(one: bytes, other: bytes) -> bool:
    """Whether two object files put the same code and data into memory, whatever their symbols are called.

    Halide numbers nameless variables anew in each process, and names the functions of parallel loops after them.
    """
    return one == other or (loaded_content(one) or [one]) == (loaded_content(other) or [other])


def loaded_content(file: bytes) -> list[bytes]:
    """The code and data of a little-endian ELF object, without symbols and their names; none of other files."""
    layout = _LAYOUTS.get(file[4:6]) if file.startswith(_ELF) else None
    if layout is None:
        return []
    (table_format, table_at), (entries_format, entries_at), section_format = layout
    (table,) = struct.unpack_from(table_format, file, table_at)
    entry_bytes, count = struct.unpack_from(entries_format, file, entries_at)
    content = []
    for index in range(count):
        kind, flags, _, offset, size = struct.unpack_from(section_format, file, table + index * entry_bytes + 4)
        if flags & _SHF_ALLOC and kind != _SHT_NOBITS:
            content.append(file[offset : offset + size])
    return sorted(content)
