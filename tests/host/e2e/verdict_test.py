#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""That no end-to-end test passes whatever happens: each verdict over made-up journals that are in
order, and over ones that are not."""
import pathlib
import tempfile
import unittest

from harness import verdict
from harness.aws import Lease
from harness.journal import SHARD_END, Journal, Journals, Position
from harness.producer import Put
from harness.proxy import Stored

PUT = {f"{key}:{number}": Put(key, number) for key in "ab" for number in range(4)}


def journal(text, shard="s", started=0, start=("TRIM_HORIZON", 0), worker="w"):
    """`text`: one event per line, with its time, blanks for tabs."""
    result = Journal()
    result.add(f"{started}\tinitialize\t{shard}\t{start[0]}\t{start[1]}\t{worker}\t1")
    for line in text.strip().split("\n") if text.strip() else ():
        result.add("\t".join(line.split()))
    return result


ALL = """
    10 record 100 0 a a:0
    10 record 101 0 b b:0
    20 record 102 0 a a:1
    20 record 103 0 b b:1
    21 checkpointed 103 0
    30 record 104 0 a a:2
    30 record 105 0 b b:2
    40 record 106 0 a a:3
    40 record 107 0 b b:3
"""


class Verdicts(unittest.TestCase):
    def test_a_record_that_nobody_processed_is_lost(self):
        self.assertEqual(verdict.lost(PUT, [journal(ALL)]), [])
        without = ALL.replace("30 record 104 0 a a:2\n", "")
        self.assertEqual(verdict.lost(PUT, [journal(without)]), ["a:2"])
        again = journal("50 record 104 0 a a:2", started=45)
        self.assertEqual(verdict.lost(PUT, [journal(without), again]), [])

    def test_a_record_with_another_id_or_key_is_altered(self):
        self.assertEqual(verdict.altered(PUT, [journal(ALL)]), [])
        self.assertEqual(len(verdict.altered(PUT, [journal(ALL.replace("b b:1", "? b:1"))])), 1)
        self.assertEqual(len(verdict.altered(PUT, [journal(ALL.replace("b b:1", "b c:1"))])), 1)

    def test_what_was_processed_twice_is_a_duplicate(self):
        self.assertEqual(verdict.duplicates([journal(ALL)]), 0)
        again = journal("50 record 106 0 a a:3\n51 record 107 0 b b:3", started=45)
        self.assertEqual(verdict.duplicates([journal(ALL), again]), 2)

    def test_duplicates_are_bounded_by_what_came_after_the_last_checkpoint(self):
        last = journal("", started=45, start=("103", 0))
        self.assertEqual(verdict.duplicate_bound([journal(ALL)]), 0, "no child came after it")
        self.assertEqual(verdict.duplicate_bound([journal(ALL), last]), 4)
        refused = journal(ALL.replace("21 checkpointed 103 0",
                                      "21 refused 103 0 ShutdownException"))
        self.assertEqual(verdict.duplicate_bound([refused, last]), 8)
        all_of_it = journal(ALL + "41 checkpointed 107 0")
        self.assertEqual(verdict.duplicate_bound([all_of_it, last]), 0)
        again = journal(ALL, started=45)
        self.assertGreater(verdict.duplicates([all_of_it, again]),
                           verdict.duplicate_bound([all_of_it, again]))

    def test_the_bound_on_duplicates_holds_for_each_shard(self):
        last = journal("50 record 106 0 a a:3", started=45, start=("103", 0))
        self.assertEqual(verdict.excess_duplicates([journal(ALL), last]), [])
        # Another shard, whose predecessor had checkpointed all: what it repeats is too much,
        # though for all shards together the bound holds.
        confirmed = journal("10 record 5 0 c c:0\n11 checkpointed 5 0", shard="t")
        again = journal("50 record 5 0 c c:0", shard="t", started=45)
        all_of_it = [journal(ALL), last, confirmed, again]
        self.assertLess(verdict.duplicates(all_of_it), verdict.duplicate_bound(all_of_it))
        [finding] = verdict.excess_duplicates(all_of_it)
        self.assertTrue(finding.startswith("t: 1 duplicates, 0 records"), finding)

    def test_a_record_is_parked_or_processed_not_both(self):
        parked = journal(ALL.replace("record 102 0 a a:1", "parked 102 0 a a:1"))
        self.assertEqual(verdict.parked_and_processed([parked]), [])
        self.assertEqual(verdict.lost(PUT, [parked]), [])
        again = journal("50 parked 102 0 a a:1", started=45)
        self.assertEqual(verdict.parked_and_processed([parked, again]), [])
        other = journal("50 record 102 0 a a:1", started=45)
        self.assertEqual(verdict.parked_and_processed([parked, other]), ["a:1"])

    def test_a_position_is_stored_when_all_up_to_it_is_done(self):
        def stored(time, sequence, shard="s"):
            return [Stored(time, "t", shard, Position(sequence, 0))]
        self.assertEqual(verdict.stored_too_early([journal(ALL)], stored(21, 103)), [])
        self.assertEqual(len(verdict.stored_too_early([journal(ALL)], stored(21, 104))), 1)
        self.assertEqual(verdict.stored_too_early([journal(ALL)], stored(21, 104, "x")), [])
        late = journal(ALL.replace("10 record 100 0 a a:0\n", "") + "    50 record 100 0 a a:0")
        self.assertEqual(len(verdict.stored_too_early([late], stored(21, 103))), 1,
                         "the first record is not done, the last one is")
        self.assertEqual(verdict.stored_too_early([late], stored(51, 107)), [])
        self.assertEqual(len(verdict.stored_too_early([journal(ALL)], [
            Stored(39, "t", "s", SHARD_END)])), 1)

    def test_a_child_must_not_begin_in_front_of_a_confirmed_checkpoint(self):
        first = journal(ALL)
        right = journal("", started=45, start=("103", 0))
        self.assertEqual(verdict.wrong_starts([first, right]), [])
        early = journal("50 record 103 0 b b:1\n51 checkpointed 103 0", started=45,
                        start=("102", 0))
        self.assertEqual(len(verdict.wrong_starts([first, early])), 1)
        stale = journal("50 record 103 0 b b:1\n51 refused 103 0 ShutdownException", started=45,
                        start=("102", 0))
        self.assertEqual(verdict.wrong_starts([first, stale]), [], "its worker has lost the lease")
        self.assertEqual(verdict.wrong_starts([first, journal("", started=15)]), [],
                         "the checkpoint came later")
        aggregated = journal("50 record 103 5 a a:0", started=45, start=("103", 5))
        self.assertEqual(len(verdict.wrong_starts([first, aggregated])), 1)

    def test_first_processing_out_of_order_is_a_breach(self):
        self.assertEqual(verdict.order_breaches(PUT, [journal(ALL)]), [])
        swapped = ALL.replace("20 record 102 0 a a:1", "50 record 102 0 a a:1")
        self.assertEqual(len(verdict.order_breaches(PUT, [journal(swapped)])), 1)
        same_time = journal("10 record 101 0 a a:1\n10 record 102 0 a a:0")
        self.assertEqual(len(verdict.order_breaches(PUT, [same_time])), 1)
        again = journal("50 record 102 0 a a:1\n50 record 104 0 a a:2", started=45)
        self.assertEqual(verdict.order_breaches(PUT, [journal(ALL), again]), [],
                         "a duplicate is none")

    def test_positions_rise_within_a_child(self):
        self.assertEqual(verdict.backward_steps([journal(ALL)]), [])
        self.assertEqual(len(verdict.backward_steps([journal(ALL.replace("105 0", "104 0"))])), 1)
        aggregated = "10 record 5 0 a a:0\n10 record 5 1 a a:1"
        self.assertEqual(verdict.backward_steps([journal(aggregated)]), [])

    def test_a_child_shard_begins_after_its_parents_stored_end(self):
        parent = journal(ALL + "41 shard_ended")
        child = journal("60 record 200 0 a a:3", shard="c", started=55)
        parents = {"c": ["s"], "s": []}
        self.assertEqual(verdict.early_children([parent, child], parents, {"s": 50}), [])
        self.assertEqual(len(verdict.early_children([parent, child], parents, {"s": 56})), 1)
        self.assertEqual(len(verdict.early_children([parent, child], parents, {})), 1)
        self.assertEqual(
            len(verdict.early_children([journal(ALL), child], parents, {"s": 50})), 1, "never told")
        late = journal(ALL.replace("40 record", "70 record") + "71 shard_ended")
        self.assertEqual(len(verdict.early_children([late, child], parents, {"s": 50})), 1)
        zombie = journal("70 record 107 0 b b:3")
        self.assertEqual(verdict.early_children([parent, zombie, child], parents, {"s": 50}), [])

    def test_the_last_position_must_be_the_one_that_is_stored(self):
        last = {"s": Lease("", 1, Position(107, 0))}
        self.assertEqual(verdict.unsettled([journal(ALL)], last), [])
        for stored in ({"s": Lease("", 1, Position(106, 0))}, {}):
            self.assertEqual(len(verdict.unsettled([journal(ALL)], stored)), 1)
        ended = journal(ALL + "41 shard_ended")
        self.assertEqual(verdict.unsettled([ended], {"s": Lease("", 1, SHARD_END)}), [])
        self.assertEqual(len(verdict.unsettled([ended], last)), 1)


class JournalFiles(unittest.TestCase):
    def test_a_line_that_a_kill_cut_short_did_not_happen_and_more_is_read_later(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.1.0"
            journals = Journals(folder)
            path.write_text("1\tinitialize\ts\tTRIM_HORIZON\t0\tw\t7\n5\trecord\t10")
            self.assertEqual([len(j.records) for j in journals.read()], [0])
            with open(path, "a") as file:
                file.write("\t0\tschlüssel\ta:0\n6\tcheckpointed\t10\t0\n")
            [only] = journals.read()
            self.assertEqual([(r.key, r.position) for r in only.records],
                             [("schlüssel", Position(10, 0))])
            self.assertEqual((only.pid, only.confirmed()), (7, Position(10, 0)))

    def test_an_event_of_an_unknown_name_is_an_error(self):
        with self.assertRaises(ValueError):
            journal("5 recorded 10 0 a a:0")


if __name__ == "__main__":
    unittest.main()
