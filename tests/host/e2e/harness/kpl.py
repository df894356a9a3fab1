# SPDX-License-Identifier: Apache-2.0
"""Aggregated records, in the format of the Kinesis Producer Library: a magic number, a protobuf
message, and the message's MD5. The daemon takes them apart.

    message AggregatedRecord {
      repeated string partition_key_table = 1;
      repeated Record records = 3;
    }
    message Record { required uint64 partition_key_index = 1; required bytes data = 3; }
"""
import hashlib

_MAGIC = b"\xf3\x89\x9a\xc2"


def _varint(number):
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(groups + bytes([number]))


def _bytes_field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def aggregate(records):
    """`records`: pairs of a partition key and data, in bytes."""
    keys = sorted({key for key, _ in records})
    message = b"".join(_bytes_field(1, key.encode()) for key in keys)
    for key, data in records:
        index = _varint(1 << 3) + _varint(keys.index(key))
        message += _bytes_field(3, index + _bytes_field(3, data))
    return _MAGIC + message + hashlib.md5(message).digest()
