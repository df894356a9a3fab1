# SPDX-License-Identifier: Apache-2.0
"""scripts/cost: what it reads from callgrind and strace, and what it calls worse."""
import copy
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/cost"))
import cost

CALLGRIND = """\
fn=(1) malloc
0 12

fn=(2) decode
0 7
cfn=(1)
calls=3 0
0 36
cfn=(3) operator new(unsigned long)
calls=5 0
0 90

fn=(3)
0 5
cfn=(1)
calls=5 0
0 60
cfn=(4) realloc
calls=2 0
0 60

totals: 285
"""


def strace(*calls):
    texts = {"read": 'read(3, "{\\"action\\"", 8192) = 8192',
             "status": 'write(4, "\\n{\\"action\\":\\"status\\",\\"responseFor\\":\\"processRecords\\"}\\n", 54) = 54',
             "status at once": 'pwritev2(4, [{iov_base="\\n{\\"action\\":\\"status\\",\\"responseFor\\":'
                               '\\"processRecords\\"}\\n", iov_len=54}], 1, -1, RWF_NOWAIT) = 54',
             "initialize": 'write(4, "\\n{\\"action\\":\\"status\\",\\"responseFor\\":\\"initialize\\"}\\n", 50) = 50'}
    return "\n".join(texts[call] for call in calls)


class Parsing(unittest.TestCase):
    def test_the_allocators_calls_are_counted_once_whoever_calls_them(self):
        self.assertEqual(cost.parse_callgrind(CALLGRIND), (285, 3 + 5 + 2))

    def test_a_file_that_was_cut_off_is_an_error(self):
        with self.assertRaises(cost.Failed):
            cost.parse_callgrind(CALLGRIND.replace("totals: 285\n", ""))

    def test_system_calls_are_those_after_the_first_batches_up_to_the_last_status(self):
        log = strace("initialize", "read", "read", "status at once", "read", "status", "read", "read",
                     "status at once", "read")
        self.assertEqual(cost.parse_strace(log, few=1), 5)
        self.assertEqual(cost.parse_strace(log, few=2), 3)

    def test_a_log_without_the_last_status_is_an_error(self):
        with self.assertRaises(cost.Failed):
            cost.parse_strace(strace("initialize", "status"), few=1)


class OneBatch(unittest.TestCase):
    few, all = cost.Counts(1000, 50, 30), cost.Counts(5000, 60, 70)
    workload = cost.Workload("X", 1, 1, few=2, more=10)

    def test_what_the_first_batches_and_the_start_cost_is_left_out(self):
        self.assertEqual(cost.of_one_batch(self.workload, self.few, self.all, 25),
                         {"instructions": 400, "allocations": 4, "system calls": 2.5})

    def test_a_batch_that_another_thread_works_for_is_an_error(self):
        with self.assertRaises(cost.Failed):
            cost.of_one_batch(self.workload, self.few, cost.Counts(5000, 50 + 81, 70), 25)


class Comparison(unittest.TestCase):
    before = {"kclxx": {"A": {"instructions": 10000, "allocations": 4, "system calls": 0}}}

    def worse(self, **figures):
        now = copy.deepcopy(self.before)
        now["kclxx"]["A"].update({name.replace("_", " "): value for name, value in figures.items()})
        return [figure for _, _, figure, *_ in cost.worse(self.before, now)]

    def test_the_limit_is_2_percent(self):
        self.assertEqual(self.worse(instructions=10200), [])
        self.assertEqual(self.worse(instructions=10201), ["instructions"])

    def test_one_allocation_or_system_call_more_is_over_it(self):
        self.assertEqual(self.worse(allocations=5, system_calls=0.1), ["allocations", "system calls"])

    def test_fewer_are_fine_and_named(self):
        self.assertEqual(self.worse(instructions=9000), [])
        self.assertEqual(len(cost.better(self.before, {"kclxx": {"A": {"instructions": 9000}}})), 1)

    def test_a_count_without_a_baseline_is_an_error(self):
        now = {"each": {"A": {"instructions": 1}}}
        self.assertEqual(cost.worse(self.before, now), [("each", "A", "instructions", None, 1)])


class CommittedBaseline(unittest.TestCase):
    def test_it_has_a_number_above_0_for_each_count(self):
        counts = json.loads(cost.BASELINE.read_text())["counts"]
        self.assertEqual(sorted(counts), sorted(cost.CLIENTS))
        for client, of_client in counts.items():
            for workload in cost.WORKLOADS:
                self.assertEqual(sorted(of_client[workload.name]), ["allocations", "instructions", "system calls"])
            for *where, value in cost.rows({client: of_client}):
                self.assertGreater(value, 0, where)


if __name__ == "__main__":
    unittest.main()
