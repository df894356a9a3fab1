# SPDX-License-Identifier: Apache-2.0
"""A stream, its consumers' lease table, and workers: daemons that run recorded_child."""
import os
import pathlib
import signal
import subprocess
import time

from . import settings
from .aws import LeaseTable, Stream
from .journal import Journals
from .processes import Process
from .producer import Producer
from waiting import SECONDS, TimedOut, wait_for

# What makes workers share faster than in production, beside what is in properties/local.properties.
# 3.x looks every 5 s whether a worker's throughput is more than 40 % off the mean. If it looks
# every second, leases move indefinitely: a worker that has just got one has not yet had its
# throughput.
_properties = {
    "varianceBalancingFrequency": "5", "dampeningPercentage": "80",
    "reBalanceThresholdPercentage": "40", "workerMetricsReporterFreqInMillis": "2000",
    "maxLeasesToStealAtOneTime": "4",
}


def major_version(kcl):
    """`kcl`: as `kclxx daemon run --kcl` takes it."""
    return int(str(kcl).partition(".")[0])


def writes_version(kcl, properties):
    """Whether a worker writes into the lease table how it works."""
    return (major_version(kcl) == 3
            and not properties.get("clientVersionConfig", "").endswith("_PHASE1"))


class Worker:
    """A daemon, started as a user starts it: `kclxx daemon run`, or another host."""

    def __init__(self, applications, name, child_options, properties, inside):
        """The first application has the log, and its directory is the worker's. `inside`: the command that starts it."""
        first = applications[0]
        self.name, self.kcl = name, major_version(first.kcl)
        self.writes_version = writes_version(first.kcl, properties)
        files = [self._write_properties(application, os.path.relpath(application.directory, first.directory),
                                        child_options, properties) for application in applications]
        java = ["-Daws.cborEnabled=false"] if first.kinesis_proxy else []
        options = [*(["--stock"] if settings.STOCK else []), "--kcl", first.kcl, "--heap", "256m", "--", *java]
        command = [*settings.HOST, *files] if settings.HOST else [settings.TOOL, "daemon", "run", *files, *options]
        self.process = Process([*inside, *command], first.directory / f"{name}.log", first.directory,
                               {**os.environ, **first.environment})

    def _write_properties(self, application, folder, child_options, properties):
        effective = {
            **_properties,
            "kinesisEndpoint": application.kinesis_url,
            "dynamoDBEndpoint": application.dynamodb_url,
            "streamName": application.stream.name, "applicationName": application.name,
            "workerId": self.name,
            "executableName": " ".join([f"{folder}/recorded_child", f"{folder}/journals", *child_options]),
        }
        if settings.FAN_OUT:
            effective |= {"retrievalMode": "FANOUT", "idleTimeBetweenReadsInMillis": ""}
        if self.kcl < 3:
            effective |= {"AwsCredentialsProvider": "",
                          "AWSCredentialsProvider": "DefaultAWSCredentialsProviderChain"}
        effective |= properties
        if settings.SHARE:
            effective["executableName"] = f"{settings.SHARE_PROGRAM} {effective['executableName']}"
        lines = (settings.SOURCE / "properties" / "local.properties").read_text().splitlines()
        kept = [line for line in lines if line.split("=")[0].strip() not in effective]
        file = application.directory / f"{self.name}.properties"
        file.write_text("\n".join([*kept, *(f"{key} = {value}" for key, value in effective.items() if value)]) + "\n")
        return file

    def alive(self):
        return self.process.alive()

    def kill(self):
        """kill -9 of the JVM. Its children see the end of their input and leave."""
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; returns how many seconds it took. The daemon then always leaves with 143."""
        start = time.monotonic()
        self.process.signal(signal.SIGTERM)
        status = self.process.wait()
        assert status == 143, f"{self.name} ended with status {status} instead of 143"
        return time.monotonic() - start

    def children(self):
        """What the daemon has started; with --share these are launchers."""
        return [pid for pid, name in self.process.group().items()
                if name in ("recorded_child", "accounted_child", "archive", "kclxx-share")]

    def residents(self):
        """The processes that serve the shards of all launchers; one, unless a launcher was killed
        while it started another. They have the variable that kclxx-share starts them with: see hand_over.hpp."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it is gone, or no process
            for variable in variables:
                fields = variable.partition(b"=")[2].split()
                if (variable.startswith(b"KCLXX_RESIDENT=") and int(fields[2]) == self.process.pid
                        and int(fields[0]) == int(entry.name)):
                    found.append(int(entry.name))
        return found

    def end(self):
        self.process.end()
        wait_for(f"the end of the resident of {self.name}", lambda: not self.residents())


class Application:
    """`proxy`: what is in front of DynamoDB for the workers; `kinesis_proxy`: of Kinesis."""

    def __init__(self, services, directory, shards, *, name, kcl=None, proxy=None,
                 kinesis_proxy=None, keys=200, aggregated=1, make_leases=True, key_name="key"):
        self.services, self.directory, self.name = services, directory, name
        self.kcl = kcl or settings.KCL
        self.dynamodb_url = proxy.url if proxy else services.dynamodb_url
        self.proxy = proxy
        self.kinesis_proxy = kinesis_proxy
        self.kinesis_url = kinesis_proxy.url if kinesis_proxy else services.kinesis_url
        self.environment = {"XDG_RUNTIME_DIR": str(directory / "run"), "RUNTIME_DIRECTORY": ""}
        for folder in ("run", "journals", "metrics", "parked"):
            (directory / folder).mkdir()
        for child in (settings.CHILD, settings.ACCOUNTED_CHILD):
            (directory / child.name).symlink_to(child)  # no blank in the path
        self._journals = Journals(directory / "journals")
        self.stream = Stream(services.kinesis, name, shards)
        self.leases = LeaseTable(services.dynamodb, name)
        if make_leases:
            self.leases.create(self.stream.shards())
        self.producer = Producer(services.kinesis, name, keys, aggregated, key_name=key_name)
        self.workers = []
        self._expected = set()  # workers that are to be there

    def start_worker(self, name, *child_options, others=(), inside=(), **properties):
        """`others`: applications whose streams the same daemon reads."""
        applications = [self, *others]
        if writes_version(self.kcl, properties) and any(
                worker.writes_version for worker in self.workers):
            # Of two 3.x workers that are an application's first at the same moment, one writes
            # down which version is at work. The other fails at that, all its further attempts
            # fail with "AssignmentMode is not initialized", and it leaves.
            self.wait_for("the first worker's version",
                          lambda: all(application.leases.has_version() for application in applications))
        # What is tested with every change e2e.fetch has fetched, for all.
        if not settings.HOST and (not settings.SERVICES or str(self.kcl) not in settings.KCL_VERSIONS):
            subprocess.run([settings.TOOL, "daemon", "fetch", "--kcl", str(self.kcl)], stdin=subprocess.DEVNULL, check=True)
        worker = Worker(applications, name, child_options, properties, inside)
        for application in applications:
            application.workers.append(worker)
        self._expected.add(worker)
        return worker

    def expect_end(self, worker):
        self._expected.discard(worker)

    def journals(self):
        return self._journals.read()

    def processed(self):
        """The ids of all records that some child has processed."""
        self.journals()
        return self._journals.ids

    def wait_for(self, what, condition, seen=lambda: "", every=0.1, seconds=SECONDS):
        """As waiting.wait_for, but fails at once when a worker ended that should not have."""
        def checked():
            self.producer.check()
            for worker in self._expected:
                if not worker.alive():
                    raise TimedOut(f"{worker.name} ended with status {worker.process.status()} "
                                   f"while waiting for {what}; see {worker.process.log}")
            return condition()
        return wait_for(what, checked, seen, every, seconds)

    def wait_for_records(self, wanted, of="shard", since=0):
        """Until children of all `wanted` shards, or workers, are in mid-stream: they began after `since`, and have had
        several batches."""
        wanted = set(wanted)

        def missing():
            return wanted - {getattr(j, of) for j in self.journals() if j.started > since and len(j.records) > 50
                             and len({record.time for record in j.records}) > 5}
        self.wait_for("records", lambda: not missing(),
                      lambda: f"none of {sorted(missing())}; leases: {self.leases.read()}")

    def wait_for_new_records(self, shards, workers=()):
        """Until so many shards have new ones. `workers`: then these have all leases, and the records."""
        seen = {j.pid: len(j.records) for j in self.journals()}

        def flow():
            if workers:
                shares = self.leases.shares()
                if set(shares) != set(workers) or sum(shares.values()) != shards:
                    return False
            return len({j.shard for j in self.journals() if (not workers or j.worker in workers)
                        and len(j.records) > seen.get(j.pid, 0)}) >= shards
        self.wait_for(f"records of {shards} shards {workers}", flow, lambda: str(self.leases.read()))

    def wait_until_processed(self, meanwhile=lambda: None):
        """Until all that was put was processed; no more records come."""
        self.producer.stop()
        missing = None

        def done():
            nonlocal missing
            meanwhile()
            missing = set(self.producer.put) - self.processed()
            return not missing

        def seen():
            return f"{len(missing)} of {len(self.producer.put)} missing: {sorted(missing)[:5]}"
        self.wait_for("all records", done, seen, every=0.3)

    def stop_worker(self, worker):
        self.expect_end(worker)
        return worker.stop()

    def kill_worker(self, worker):
        self.expect_end(worker)
        worker.kill()

    def end(self):
        for worker in self.workers:
            worker.end()
        if settings.SHARE:
            left = list((self.directory / "run").rglob("*-*-*"))
            assert not left, f"sockets were left: {left}"
