# SPDX-License-Identifier: Apache-2.0
"""A child without the library, for `kclxx replay --effects`: each record becomes a row of a table that survives it.

usage: table_child.py HOW FILE
  exactly-once   rows and position are one commit; records that the table has are left out
  at-least-once  a record that comes twice becomes two rows
  buffered       two batches wait for their commit, though they are checkpointed
"""
import base64
import json
import os
import sys

how, path = sys.argv[1:]


def say(**message):
    sys.stdout.write("\n" + json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Table:
    def __init__(self):
        self.rows, self.position = [], -1
        if os.path.exists(path):
            with open(path) as file:
                *self.rows, position = file.read().splitlines()
            self.position = int(position)

    def commit(self, rows, position):
        self.rows += rows
        self.position = max(position, self.position)
        with open(path + ".new", "w") as file:
            file.write("\n".join([*self.rows, str(self.position)]) + "\n")
        os.replace(path + ".new", path)


table = Table()
buffered = []


def process(records):
    if how == "exactly-once":
        records = [record for record in records if int(record["sequenceNumber"]) > table.position]
    rows = [record["sequenceNumber"] + " " + base64.b64decode(record["data"]).decode() for record in records]
    position = max((int(record["sequenceNumber"]) for record in records), default=-1)
    buffered.append((rows, position))
    while len(buffered) > (2 if how == "buffered" and records else 0):
        table.commit(*buffered.pop(0))


for line in sys.stdin:
    message = json.loads(line)
    action = message["action"]
    if action == "checkpoint":
        continue
    if action == "processRecords":
        process(message["records"])
        say(action="checkpoint", sequenceNumber=None, subSequenceNumber=None)
    if action == "shardEnded":
        process([])
        say(action="checkpoint", sequenceNumber=None, subSequenceNumber=None)
    say(action="status", responseFor=action)
