# SPDX-License-Identifier: Apache-2.0
"""Clients of the emulators, and of nothing else."""
import os
import typing

for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]  # nothing of the caller's account may play a part
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
}
os.environ.update(ENVIRONMENT)

import boto3  # noqa: E402
import botocore.config  # noqa: E402
import botocore.exceptions  # noqa: E402

from .journal import SHARD_END, Position  # noqa: E402
from waiting import SECONDS, wait_for  # noqa: E402


def client(service, url):
    if not url.startswith("http://127.0.0.1:"):
        raise ValueError(f"{url} is not on this machine")
    # A PutRecords that is made again, because its answer is late, puts its records twice.
    config = botocore.config.Config(retries={"max_attempts": 8}, proxies={}, read_timeout=SECONDS)
    return boto3.client(service, endpoint_url=url, region_name="us-east-1", config=config)


class Shard(typing.NamedTuple):
    id: str
    low: int
    high: int
    parents: list
    open: bool


class Stream:
    """A stream of the local Kinesis."""

    def __init__(self, kinesis, name, shards):
        self.kinesis, self.name = kinesis, name
        kinesis.create_stream(StreamName=name, ShardCount=shards)
        self.wait_until_active()

    def wait_until_active(self):
        def active():
            summary = self.kinesis.describe_stream_summary(StreamName=self.name)
            return summary["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE"
        wait_for(f"stream {self.name}", active)

    def shards(self):
        answer = self.kinesis.list_shards(StreamName=self.name)
        found = answer["Shards"]
        while token := answer.get("NextToken"):  # a page has 100
            answer = self.kinesis.list_shards(NextToken=token)
            found += answer["Shards"]
        return [Shard(one["ShardId"], int(one["HashKeyRange"]["StartingHashKey"]),
                      int(one["HashKeyRange"]["EndingHashKey"]),
                      [one[name] for name in ("ParentShardId", "AdjacentParentShardId")
                       if one.get(name)],
                      "EndingSequenceNumber" not in one["SequenceNumberRange"])
                for one in found]

    def parents(self):
        return {shard.id: shard.parents for shard in self.shards()}

    def split(self, shard):
        middle = (shard.low + shard.high + 1) // 2
        self.kinesis.split_shard(StreamName=self.name, ShardToSplit=shard.id,
                                 NewStartingHashKey=str(middle))
        self.wait_until_active()

    def merge(self, low, high):
        self.kinesis.merge_shards(StreamName=self.name, ShardToMerge=low.id,
                                  AdjacentShardToMerge=high.id)
        self.wait_until_active()


class Lease(typing.NamedTuple):
    owner: str  # empty: without an owner
    counter: int
    checkpoint: Position


class LeaseTable:
    """What the KCL keeps in DynamoDB for an application."""

    def __init__(self, dynamodb, application):
        self.dynamodb, self.application = dynamodb, application

    def create(self, shards):
        """As the KCL would, which takes longer: it sleeps for 10 s when it has made a table, and
        before it fills it, for up to 30 s in case that others do the same."""
        def key(attribute, type):
            return {"AttributeName": attribute, "KeyType": type}
        self.dynamodb.create_table(
            TableName=self.application, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"}
                                  for name in ("leaseKey", "leaseOwner")],
            KeySchema=[key("leaseKey", "HASH")],
            GlobalSecondaryIndexes=[{
                "IndexName": "LeaseOwnerToLeaseKeyIndex",
                "KeySchema": [key("leaseOwner", "HASH"), key("leaseKey", "RANGE")],
                "Projection": {"ProjectionType": "KEYS_ONLY"}}])
        for shard in shards:
            parents = {"parentShardId": {"SS": shard.parents}} if shard.parents else {}
            self.dynamodb.put_item(TableName=self.application, Item=parents | {
                "leaseKey": {"S": shard.id}, "leaseCounter": {"N": "0"},
                "checkpoint": {"S": "TRIM_HORIZON"}, "checkpointSubSequenceNumber": {"N": "0"},
                "ownerSwitchesSinceCheckpoint": {"N": "0"},
                "startingHashKey": {"S": str(shard.low)}, "endingHashKey": {"S": str(shard.high)}})

    def read(self):
        """{shard: Lease}; empty while there is no table."""
        leases = {}
        try:
            for page in self.dynamodb.get_paginator("scan").paginate(
                    TableName=self.application, ConsistentRead=True):
                for item in page["Items"]:
                    # The KCL may keep other things in this table too; only leases have these.
                    if "checkpoint" not in item:
                        continue
                    leases[item["leaseKey"]["S"]] = Lease(
                        item.get("leaseOwner", {}).get("S", ""), int(item["leaseCounter"]["N"]),
                        Position.parse(item["checkpoint"]["S"],
                                       item["checkpointSubSequenceNumber"]["N"]))
        except self.dynamodb.exceptions.ResourceNotFoundException:
            return {}
        return leases

    def shares(self):
        """{worker: number of its shards}, of those that are not at their end."""
        shares = {}
        for lease in self.read().values():
            if lease.owner and lease.checkpoint.sequence != SHARD_END.sequence:
                shares[lease.owner] = shares.get(lease.owner, 0) + 1
        return shares

    def _coordinator_state(self, key):
        """3.5 keeps it among the leases (3.1 had a table of its own for it)."""
        try:
            return self.dynamodb.get_item(TableName=self.application, ConsistentRead=True,
                                          Key={"leaseKey": {"S": key}}).get("Item", {})
        except self.dynamodb.exceptions.ResourceNotFoundException:
            return {}

    def leader(self):
        """The worker that gives leases to the others (3.x), or None."""
        return self._coordinator_state("Leader").get("ownerName", {}).get("S")

    def has_version(self):
        """Whether the application's first 3.x worker has written down how it works."""
        return bool(self._coordinator_state("Migration3.0"))

    def forget_leader(self):
        """The lock of a leader that was killed lasts two minutes, whatever is configured; without
        its row the next one is elected at once."""
        self.dynamodb.delete_item(TableName=self.application, Key={"leaseKey": {"S": "Leader"}})
