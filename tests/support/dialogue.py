# SPDX-License-Identifier: Apache-2.0
"""A child, and the daemon's side of the dialogue with it."""
import base64
import json
import subprocess
import threading

from waiting import SECONDS


class Child:
    def __init__(self, command, shard, environment, stderr):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                                        text=True, env=environment)
        self.persisted = None
        self.call({"action": "initialize", "shardId": shard, "sequenceNumber": "TRIM_HORIZON", "subSequenceNumber": 0})

    def text(self):
        """The text that it has logged, for the message of a failure."""
        return ""

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self, errors=()):
        """Answers its checkpoints until its status comes, the first checkpoints with these errors. False: it has ended,
        or was killed since it did not answer."""
        errors = list(errors)
        watchdog = threading.Timer(SECONDS, self.process.kill)
        watchdog.start()
        try:
            for text in self.process.stdout:
                if text == "\n":  # a child of kclxx begins each line with a newline
                    continue
                line = json.loads(text)
                if line["action"] == "status":
                    return True
                error = errors.pop(0) if errors else None
                if error is None:
                    self.persisted = line.get("sequenceNumber")
                self.say({"action": "checkpoint", "sequenceNumber": line.get("sequenceNumber"),
                          "subSequenceNumber": line.get("subSequenceNumber"), "error": error})
            return False
        finally:
            watchdog.cancel()

    def call(self, message, errors=()):
        self.say(message)
        if not self.answer(errors):
            raise AssertionError(f"status {self.process.wait()}: {self.text()}")

    @staticmethod
    def batch(payloads, first, millis_behind_latest=0):
        """A batch of these payloads, with sequence numbers from `first` on."""
        return {"action": "processRecords", "millisBehindLatest": millis_behind_latest, "records": [
            {"action": "record", "data": base64.b64encode(payload.encode()).decode(), "partitionKey": "k",
             "approximateArrivalTimestamp": 1600000000000, "sequenceNumber": str(first + index), "subSequenceNumber": 0}
            for index, payload in enumerate(payloads)]}

    def end(self):
        """Closes the input, and returns the exit status."""
        self.process.stdin.close()
        status = self.process.wait(SECONDS)
        self.process.stdout.close()
        return status
