# SPDX-License-Identifier: Apache-2.0
"""What follows from the journals. Pure: lists in, findings out; verdict_test.py shows that each
of them can fail."""
import bisect
import collections
import itertools

from .journal import SHARD_END, Position


def lost(put, journals):
    """What was put and not processed by anyone."""
    return sorted(set(put) - {record.id for j in journals for record in j.records})


def altered(put, journals):
    """Records that were never put, or under another partition key. `put`: {id: Put}."""
    return [f"{record.id} with key {record.key}, {j}" for j in journals for record in j.records
            if record.id not in put or put[record.id].key != record.key]


def parked_and_processed(journals):
    """Records that one child parked and the same or another one processed."""
    ids = {parked: {r.id for j in journals for r in j.records if r.parked == parked}
           for parked in (False, True)}
    return sorted(ids[False] & ids[True])


def stored_too_early(journals, stored):
    """Positions that were stored before all records up to them were processed or parked.

    `stored`: proxy.Stored. A record that nobody has processed is in `lost`.
    """
    done = collections.defaultdict(dict)  # {shard: {position: when first}}
    for j in journals:
        for r in j.records:
            done[j.shard][r.position] = min(r.time, done[j.shard].get(r.position, r.time))
    findings = []
    for shard, of_shard in done.items():
        positions = sorted(of_shard)
        latest = list(itertools.accumulate((of_shard[p] for p in positions), max))
        for one in stored:
            count = bisect.bisect_right(positions, one.position) if one.shard == shard else 0
            if count and latest[count - 1] > one.time:
                findings.append(f"{shard}: {one.position} was stored before all up to it was done")
    return findings


def duplicates(journals):
    """How many records were processed once more than was needed."""
    times = collections.Counter(record.id for j in journals for record in j.records)
    return sum(times.values()) - len(times)


def duplicate_bound(journals):
    """The most duplicates there may be: what children processed after their last checkpoint.

    Only children after which another one read the shard again count. Not for children that leave
    checkpoints to kclxx: their journals have none.
    """
    last = {j.shard: j for j in sorted(journals, key=lambda j: j.started)}
    return sum(sum(record.position > j.confirmed() for record in j.records)
               for j in journals if last[j.shard] is not j)


def excess_duplicates(journals):
    """Shards of which more was processed again than came after the last checkpoints."""
    findings = []
    for shard, its in sorted(_by_shard(journals).items()):
        found, bound = duplicates(its), duplicate_bound(its)
        if found > bound:
            findings.append(f"{shard}: {found} duplicates, {bound} records came after the last "
                            "checkpoints of its children")
    return findings


def wrong_starts(journals):
    """Children that began in front of what the daemon had confirmed before, or were given a record
    in front of where they began.

    A worker that was suspended between reading the position and starting the child (paused, or on a
    busy machine) may have lost the lease meanwhile; its child then begins where no worker is any more.
    It is known by this: not one of its checkpoints is confirmed.
    """
    findings = []
    for j in journals:
        before = [c.position for other in journals if other.shard == j.shard
                  for c in other.checkpoints if not c.error and c.time < j.started]
        owns = any(not c.error for c in j.checkpoints)
        if owns and before and j.start < max(before):
            findings.append(f"{j}: began in front of {max(before)}, which was confirmed before")
        findings += [f"{j}: {r.position} is not after the start" for r in j.records[:1]
                     if r.position <= j.start]
    return findings


def order_breaches(put, journals):
    """Records whose first processing came later than that of a later one of the same key.

    `put`: {id: Put}, with the number of the record within its key.
    """
    first = {}
    for j in journals:
        for place, record in enumerate(j.records):
            when = (record.time, place)
            if record.id not in first or when < first[record.id]:
                first[record.id] = when
    findings = []
    highest = {}
    for id in sorted(first, key=first.get):
        if id not in put:
            continue  # `altered` has it
        key, number = put[id].key, put[id].number
        if number < highest.get(key, -1):
            findings.append(f"{id} was first processed after number {highest[key]} of its key")
        highest[key] = max(number, highest.get(key, -1))
    return findings


def backward_steps(journals):
    """Within one child positions only rise."""
    return [f"{j}: {after.position} after {before.position}" for j in journals
            for before, after in zip(j.records, j.records[1:]) if after.position <= before.position]


def early_children(journals, parents, ends):
    """Children of a reshard which began before their parents' ends.

    `parents`: {shard: [its parents]}. `ends`: {shard: when the request that stores SHARD_END
    reached DynamoDB}, so that a reader that sees it stored sees it later.
    """
    findings = []
    processed = _by_shard(journals)
    for shard, its in processed.items():
        for parent in parents.get(shard, ()):
            begun = min(j.started for j in its)
            if parent not in ends:
                findings.append(f"{shard} was read though the end of {parent} was never stored")
            elif begun <= ends[parent]:
                findings.append(f"{shard} was begun {(ends[parent] - begun) / 1e6:.1f} ms before "
                                f"the end of {parent} was stored")
            later = [r for j in processed[parent] for r in j.records if r.time >= begun]
            if later and not is_zombie_only(processed[parent], begun):
                findings.append(f"{len(later)} records of {parent} were processed when {shard} "
                                "had begun")
            if parent in ends and not any("shard_ended" in j.events for j in processed[parent]):
                findings.append(f"the end of {parent} was stored and no child received it")
    return findings


def is_zombie_only(journals, begun):
    """Whether all that is processed after `begun` was processed by another child before: a worker
    that has lost its lease continues until it finds out."""
    before = {r.id for j in journals for r in j.records if r.time < begun}
    return all(r.id in before for j in journals for r in j.records if r.time >= begun)


def unsettled(journals, leases):
    """Shards whose stored position is not the last one processed. `leases`: {shard: Lease}."""
    findings = []
    for shard in sorted({j.shard for j in journals}):
        reached = max([Position(-10, 0)] + [r.position for j in journals if j.shard == shard
                                            for r in j.records] +
                      [j.start for j in journals if j.shard == shard])
        if any("shard_ended" in j.events for j in journals if j.shard == shard):
            reached = SHARD_END
        stored = leases[shard].checkpoint if shard in leases else None
        if stored != reached:
            findings.append(f"{shard}: {reached} was processed last, {stored} is stored")
    return findings


def _by_shard(journals):
    shards = collections.defaultdict(list)
    for j in journals:
        shards[j.shard].append(j)
    return shards
