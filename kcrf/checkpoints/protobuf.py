"""Parses protocol buffer messages without generated code. Refuses every message that Google's parser refuses.

Format: https://protobuf.dev/programming-guides/encoding
"""

from kcrf.checkpoints.leveldb_table import read_varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
SIZES = {FIXED64: 8, FIXED32: 4}
LARGEST_FIELD = (1 << 29) - 1


def parse_message(data, types, repeated=()):
    """Parses a message into a dict by field number.

    Args:
        data: The bytes of the message.
        types: A dict from field number to wire type. Other fields are skipped.
        repeated: The field numbers that may occur several times; their values are lists. Defaults to none.

    Returns:
        A dict of ints and bytes by field number. Fields that do not occur are missing.

    Raises:
        ValueError, IndexError: The message is truncated or malformed, or a field has an unexpected wire type.

    >>> parse_message(bytes([0x08, 0x63]), {1: VARINT})
    {1: 99}
    """
    fields, place = {}, 0
    while place < len(data):
        tag, place = read_varint(data, place)
        number, wire_type = tag >> 3, tag & 7
        value, place = _read_value(data, place, wire_type)
        if not 0 < number <= LARGEST_FIELD:
            raise ValueError(f"no field can have the number {number}")
        if number not in types:
            continue
        if wire_type != types[number] or (number in fields and number not in repeated):
            raise ValueError(f"field {number} occurs twice, or with wire type {wire_type}")
        if number in repeated:
            fields.setdefault(number, []).append(value)
        else:
            fields[number] = value
    return fields


def _read_value(data, place, wire_type):
    if wire_type == VARINT:
        return read_varint(data, place)
    if wire_type == BYTES:
        size, place = read_varint(data, place)
    elif wire_type in SIZES:
        size = SIZES[wire_type]
    else:
        raise ValueError(f"unknown wire type {wire_type}")
    value, end = data[place : place + size], place + size
    if end > len(data):
        raise ValueError(f"a field of {size} bytes that ends after its message")
    return (value if wire_type == BYTES else int.from_bytes(value, "little")), end
