# SPDX-License-Identifier: Apache-2.0
"""Puts numbered records, and knows what it has put."""
import hashlib
import threading
import time
import typing

PADDING = "." * 60

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
    """An aggregated record, in the format of the Kinesis Producer Library: a magic number, a protobuf message, and the
    message's MD5. The daemon takes it apart. `records`: pairs of a partition key and data, in bytes.

        message AggregatedRecord {
          repeated string partition_key_table = 1;
          repeated Record records = 3;
        }
        message Record { required uint64 partition_key_index = 1; required bytes data = 3; }
    """
    keys = sorted({key for key, _ in records})
    message = b"".join(_bytes_field(1, key.encode()) for key in keys)
    for key, data in records:
        index = _varint(1 << 3) + _varint(keys.index(key))
        message += _bytes_field(3, index + _bytes_field(3, data))
    return _MAGIC + message + hashlib.md5(message).digest()


class Put(typing.NamedTuple):
    key: str
    number: int  # within its key, from 0


class Producer:
    """Puts a record per partition key in each round, of every second key one that has `aggregated`
    user records in it.

    A call has each key at most once and the next one is made when it was answered: the records of
    a key are in the stream in the order of their numbers. An id is `KEY:NUMBER`. `payload` is what a
    record has for its id.
    """

    def __init__(self, kinesis, stream, keys=200, aggregated=1, payload=lambda id: f"{id} {PADDING}",
                 key_name="key"):
        self.kinesis, self.stream, self.payload = kinesis, stream, payload
        # Some are not ASCII: the daemon needs to know in which character set it writes.
        self.keys = [f"{'schlüssel' if i % 10 == 0 else key_name}-{i}" for i in range(keys)]
        self.aggregated = {key: aggregated if i % 2 else 1 for i, key in enumerate(self.keys)}
        self.rounds = 0
        self.put = {}  # id: Put; only grows
        self._stop = threading.Event()
        self._thread, self._failure = None, None

    def put_round(self):
        data = {key: self._next_data(key) for key in self.keys}
        for start in range(0, len(self.keys), 500):
            left = self.keys[start : start + 500]
            for tries in range(12):
                left = self._put_some(left, data)
                if not left:
                    break
                time.sleep(min(2.0, 0.05 * 2**tries))
            else:
                raise RuntimeError(f"{len(left)} records were refused twelve times")
        self.rounds += 1

    def _next_data(self, key):
        many = self.aggregated[key]
        first = self.rounds * many
        for number in range(first, first + many):  # before: one that was put is never missing here
            self.put[f"{key}:{number}"] = Put(key, number)
        records = [(key, self.payload(f"{key}:{number}").encode())
                   for number in range(first, first + many)]
        return aggregate(records) if many > 1 else records[0][1]

    def _put_some(self, keys, data):
        """Returns those that were refused."""
        answer = self.kinesis.put_records(StreamName=self.stream, Records=[
            {"Data": data[key], "PartitionKey": key} for key in keys])
        return [key for key, one in zip(keys, answer["Records"]) if "ErrorCode" in one]

    def start(self, records_per_second):
        """Continues with that on a thread, until `stop`."""
        pause = sum(self.aggregated.values()) / records_per_second

        def work():
            due = time.monotonic()
            try:
                while not self._stop.is_set():
                    self.put_round()
                    due = max(due + pause, time.monotonic() - pause)
                    self._stop.wait(max(0, due - time.monotonic()))
            except Exception as failure:  # for `stop` to raise
                self._failure = failure
        self._stop.clear()
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def stop(self):
        """Ends the thread."""
        if self._thread:
            self._stop.set()
            self._thread.join()
            self._thread = None
        self.check()

    def check(self):
        if self._failure:
            raise self._failure
