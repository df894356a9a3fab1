#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""DynamoDB throttles checkpoints: nothing is lost, and the retries show in the log.

The AWS SDK in the daemon makes a refused request again, up to eight times (1.x: three), with waits
that double from half a second: it takes most of a minute (1.x: three seconds) until a child hears
of it. Meanwhile the daemon cannot renew the shard's lease: the renewal waits for the lock that the
checkpoint holds. What follows depends on failoverTimeMillis, so each of the two ways has a test.
"""
import collections

from harness import child_log, settings, verdict
from harness.case import DaemonCase, main

SHARDS = 8
TOLD = 12  # so often does a child hear of it: some twice in a row


class Throttling(DaemonCase):
    def test_a_checkpoint_that_was_throttled_is_tried_again_until_it_is_stored(self):
        application = self.start(SHARDS, ["one"], failover=300000)
        [worker] = application.workers
        proxy = application.proxy
        proxy.throttle(0.2, calls=0.6)
        application.wait_for(f"{TOLD} checkpoints that failed",
                             lambda: len(self.failures(application)) >= TOLD,
                             lambda: f"{len(self.failures(application))} failed", every=1)
        proxy.throttle(0)
        self.settle(application)
        application.stop_worker(worker)

        calls, failures = proxy.calls.values(), self.failures(application)
        self.assert_none("disagreements of proxy and log", verdict.untold(calls, failures))
        self.assert_none("checkpoints that were not stored in the end",
                         verdict.not_made_good(failures, application.journals()))
        errors = collections.Counter(failure.error for failure in failures)
        self.assertGreater(errors["ThrottlingException"], 0)
        # What the daemon makes of it when its own limit of a minute ends the SDK's attempts.
        self.assertLessEqual(set(errors), {"ThrottlingException",
                                           "KinesisClientLibDependencyException"})
        self.assertEqual(len(application.journals()), SHARDS, "a lease was lost")
        self.assert_none("positions that are not stored",
                         verdict.unsettled(application.journals(), application.leases.read()))
        duplicates, _ = self.check(application)
        self.assertEqual(duplicates, 0)
        self.figures(f"{len(application.producer.put)} records, {SHARDS} shards; "
                     f"{self.layers(proxy)}; the children heard of {len(failures)} "
                     f"({self.listed(errors)}) and tried again after {self.waits(failures)}; all "
                     f"were stored in the end, 0 lost, {duplicates} duplicates")

    def test_a_lease_that_expires_while_a_checkpoint_is_throttled_loses_nothing(self):
        # Less than a refused checkpoint takes. 10000 is the default.
        failover = 10000 if settings.KCL > 1 else 2000
        application = self.start(4, ["one", "two"], failover)
        proxy = application.proxy
        proxy.throttle(0.2, calls=0.3)

        def lost():
            return [failure for failure in self.failures(application)
                    if failure.error == "ShutdownException"]
        application.wait_for("checkpoints for leases that were lost", lambda: len(lost()) >= 2,
                             lambda: str(self.failures(application)), every=1)
        proxy.throttle(0)
        self.settle(application)
        for failure in lost():
            self.assertIsNone(failure.retry_after, failure)
        self.check_starts(application)
        duplicates, bound = self.check(application)
        errors = collections.Counter(failure.error for failure in self.failures(application))
        self.figures(f"{len(application.producer.put)} records, 4 shards, 2 workers, "
                     f"failoverTimeMillis {failover}; {self.layers(proxy)}; the children "
                     f"heard: {self.listed(errors)}; shards were begun "
                     f"{len(application.journals()) - 4} times more, each exactly at the stored "
                     f"position; 0 lost, {duplicates} duplicates (at most {bound} possible)")

    def start(self, shards, workers, failover):
        """An application in mid-stream: each worker has had confirmed checkpoints."""
        application = self.application(shards, proxy=self.proxy())
        application.producer.start(600)
        for name in workers:
            application.start_worker(name, "--checkpoint-every", "300",
                                     failoverTimeMillis=str(failover))

        def flows():
            confirmed = [j for j in application.journals() if j.confirmed() > j.start]
            return ({j.worker for j in confirmed} == set(workers)
                    and len({j.shard for j in confirmed}) == shards)
        application.wait_for("checkpoints of each shard", flows)
        return application

    def failures(self, application):
        return [failure for worker in application.workers
                for failure in child_log.failures(worker.process.log_text())]

    def layers(self, proxy):
        """What was refused, and what the SDK retried with success."""
        calls = [call for call in proxy.calls.values() if call.refused]
        failed = [call for call in calls if call.failed()]
        longest = max((call.last - call.first) / 1e9 for call in calls)
        return (f"DynamoDB refused {proxy.throttled} requests of {len(calls)} checkpoints; the SDK "
                f"made {len(calls) - len(failed)} of them good and {len(failed)} not, with up to "
                f"{max(call.requests for call in calls)} requests in {longest:.0f} s")

    def listed(self, errors):
        return ", ".join(f"{count} {name}" for name, count in sorted(errors.items()))

    def waits(self, failures):
        waits = [failure.retry_after for failure in failures if failure.retry_after is not None]
        return f"{min(waits)} to {max(waits)} ms"


if __name__ == "__main__":
    main()
