# SPDX-License-Identifier: Apache-2.0
"""
Messages of protobuf without a schema, for the tests' clients and servers.

A message is a nested dictionary {field number: value}; a list repeats its field.
"""


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(message):
    out = bytearray()
    for field, value in message.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                out += varint(field << 3) + varint(item)
                continue
            data = encode(item) if isinstance(item, dict) else item.encode()
            out += varint(field << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def fields(data):
    """(field number, integer or bytes) of each field, in order."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def decode(data):
    """{field number: integer or bytes}; of a repeated field the last."""
    return dict(fields(data))


def repeated(data, number):
    """All values of a repeated field."""
    return [value for field, value in fields(data) if field == number]
