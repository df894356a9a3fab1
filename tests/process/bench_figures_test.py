# SPDX-License-Identifier: Apache-2.0
"""The figures of scripts/bench: ratios, and the comparison with the baseline."""
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/report"))
import baseline
import goals
import micro
import report
import run
from workloads import CPU_GB, RATE, WORKLOADS

A = next(workload for workload in WORKLOADS if workload.name == "A")


def driven(cpu_seconds, seconds=1.0):
    """What the driver reports of a run."""
    return {"cpu_seconds": cpu_seconds, "seconds": seconds, "records": 1000, "bytes": 10**9, "batches": 1,
            "round_trip_us": {"p10": 5, "p50": 10, "p99": 20}, "peak_bytes": 10**6, "line_bytes": 10**6}


def results(cpu_seconds, workload="A1"):
    return {"workloads": {workload: run.summary(A, {"floor": [driven(1.0)], "kclxx": [driven(cpu_seconds)]})}}


class Figures(unittest.TestCase):
    def test_a_ratio_is_taken_between_runs_that_stood_beside_each_other(self):
        # The machine was three times as slow in the second repetition; the ratio is 2 in each.
        runs = {"floor": [driven(1.0), driven(3.0), driven(1.0)], "kclxx": [driven(2.0), driven(6.0), driven(2.0)]}
        self.assertEqual(run.summary(A, runs)["kclxx"][CPU_GB.key], {"value": 2.0, "ratio": 2.0})

    def test_a_rate_counts_records_in_the_time_of_round_trips(self):
        self.assertEqual(RATE.of(driven(1.0, seconds=0.5)), 2000)

    def test_every_plot_is_well_formed(self):
        whole = results(2.0, "A")
        whole["series"] = {"records": {"kclxx": [{"records": n, "payload": 100 * n, "cpu_us": n} for n in (1, 10)]},
                           "bytes": {"kclxx": [{"records": 10, "payload": 100 * n, "cpu_us": n} for n in (1, 10)]}}
        with tempfile.TemporaryDirectory() as folder:
            paths = report.plots(whole, Path(folder))
            self.assertEqual([path.name for path in paths], ["cpu.svg", "rate.svg", "linear.svg"])
            for path in paths:
                xml.etree.ElementTree.parse(path)

    def test_a_micro_benchmark_is_compared_with_a_floor_of_its_own(self):
        def timed(name, *times):
            return [{"run_type": "iteration", "run_name": name, "name": name, "cpu_time": time} for time in times]
        runs = timed("decode/1", 6, 60, 8) + timed("floor_of_decode/1", 2, 2, 1) + timed("encode", 3)
        runs += timed("floor_of_encode", 3)
        found = micro.ratios(runs + [{"run_type": "aggregate", "run_name": "encode", "name": "encode", "cpu_time": 99}])
        self.assertEqual({name: row[micro.CPU.key]["ratio"] for name, row in found.items()}, {"decode/1": 4, "encode": 1})


class Goals(unittest.TestCase):
    def judged(self, seconds):
        runs = {"floor": [driven(1.0)], "rust": [driven(1.0, seconds=8)], "kclxx": [driven(1.0, seconds=seconds)]}
        return [(row["goal"], row["reached"]) for row in goals.judged({"A": run.summary(A, runs)})]

    def test_goals_are_judged_on_the_run_s_own_figures_and_the_others_left_out(self):
        floor, rust = "A: records/s ÷ the floor's", "A: records/s ÷ the Rust client's"
        self.assertEqual(self.judged(seconds=2), [(floor, True), (rust, True)])
        self.assertEqual(self.judged(seconds=2.5), [(floor, False), (rust, True)])
        self.assertEqual(self.judged(seconds=4), [(floor, False), (rust, False)])


class Baseline(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        committed = baseline.PATH
        self.addCleanup(setattr, baseline, "PATH", committed)
        baseline.PATH = Path(folder.name) / "baseline.json"
        baseline.save(results(2.0))

    def worse(self, cpu_seconds):
        return [(name, client, figure.key) for name, client, figure, *_ in baseline.worse(results(cpu_seconds))]

    def test_a_ratio_that_got_16_percent_worse_is_found(self):
        self.assertEqual(self.worse(2.0 * 1.16), [("A1", "kclxx", CPU_GB.key)])

    def test_a_ratio_that_got_14_percent_worse_is_noise(self):
        self.assertEqual(self.worse(2.0 * 1.14), [])

    def test_a_ratio_that_got_better_is_fine(self):
        self.assertEqual(self.worse(1.0), [])

    def test_a_guarded_figure_without_a_baseline_is_told(self):
        self.assertEqual(baseline.missing(results(2.0)), [])
        baseline.PATH.write_text("{}")
        self.assertIn(("A1", "kclxx", CPU_GB), baseline.missing(results(2.0)))

    def test_a_micro_benchmark_that_got_worse_is_found(self):
        def run_with(ratio):
            return {"workloads": {"micro": {"encode": {"cpu_ns": {"value": 1, "ratio": ratio}}}}}
        baseline.save(run_with(2.0))
        self.assertEqual([row[:2] for row in baseline.worse(run_with(2.4))], [("micro", "encode")])
        self.assertEqual(baseline.worse(run_with(2.2)), [])

    def test_a_run_of_some_workloads_leaves_the_rest_of_the_baseline_alone(self):
        baseline.PATH.write_text(json.dumps({"B1": {"kclxx": {}}, "not guarded any more": {}}))
        baseline.save(results(2.0))
        self.assertEqual(sorted(baseline.load()), ["A1", "B1"])


class CommittedBaseline(unittest.TestCase):
    def test_it_has_all_that_is_guarded(self):
        self.assertEqual(sorted(baseline.load()), sorted(name for name, _ in baseline.guarded()))


if __name__ == "__main__":
    unittest.main()
