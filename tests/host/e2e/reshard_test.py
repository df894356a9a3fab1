#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Split and merge: a child shard is begun only when its parents' ends are stored, and the records
of a partition key keep their order across it."""
from harness.case import DaemonCase, main


class Reshard(DaemonCase):
    def test_children_begin_after_their_parents_ends(self):
        application = self.application(3, proxy=self.proxy())
        producer, stream = application.producer, application.stream
        producer.start(600)
        for name in ("one", "two"):
            application.start_worker(name, "--checkpoint-every", "300")
        application.wait_for_records(stream.parents())

        first, second, third = sorted(stream.shards(), key=lambda shard: shard.low)
        stream.split(first)
        stream.merge(second, third)
        children = [shard for shard in stream.shards() if shard.parents]
        self.assertEqual(sorted(len(shard.parents) for shard in children), [1, 1, 2])
        application.wait_for_records(shard.id for shard in children)
        # And a generation further: a shard that was made by a merge.
        stream.split(next(shard for shard in children if len(shard.parents) == 2))
        grandchildren = [shard.id for shard in stream.shards()
                         if set(shard.parents) & {child.id for child in children}]
        application.wait_for_records(grandchildren)
        application.wait_until_processed()

        ends = application.proxy.ends(application.name)
        self.assertEqual(set(ends), {shard.id for shard in stream.shards() if not shard.open})
        duplicates, bound = self.check(application)
        begun = {}
        for journal in reversed(application.journals()):
            begun[journal.shard] = journal.started
        gaps = [(begun[shard.id] - max(ends[parent] for parent in shard.parents)) / 1e9
                for shard in stream.shards() if shard.parents]
        self.figures(f"{len(producer.put)} records, 2 splits and a merge in mid-stream, "
                     f"{len(gaps)} child shards, begun {min(gaps):.1f} to {max(gaps):.1f} s after "
                     f"the last of their parents' ends was stored, 0 early, 0 out of order, "
                     f"0 lost, {duplicates} duplicates (at most {bound} possible)")


if __name__ == "__main__":
    main()
