# SPDX-License-Identifier: Apache-2.0
"""The figures of scripts/bench: ratios, and the comparison with the baseline."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/report"))
import baseline
import run
from workloads import CPU_GB, WORKLOADS

A = next(workload for workload in WORKLOADS if workload.name == "A")


def driven(cpu_seconds):
    """What the driver reports of a run."""
    return {"cpu_seconds": cpu_seconds, "seconds": 1.0, "records": 1000, "bytes": 10**9, "batches": 1,
            "round_trip_us": {"p10": 5, "p50": 10, "p99": 20}, "peak_bytes": 10**6, "line_bytes": 10**6}


def results(cpu_seconds, workload="A1"):
    return {"workloads": {workload: run.summary(A, {"floor-unwaited": [driven(1.0)], "kclxx": [driven(cpu_seconds)]})}}


class Figures(unittest.TestCase):
    def test_a_ratio_is_taken_between_runs_that_stood_beside_each_other(self):
        # The machine was three times as slow in the second repetition; the ratio is 2 in each.
        runs = {"floor-unwaited": [driven(1.0), driven(3.0), driven(1.0)], "kclxx": [driven(2.0), driven(6.0), driven(2.0)]}
        self.assertEqual(run.summary(A, runs)["kclxx"][CPU_GB.key], {"value": 2.0, "ratio": 2.0})

    def test_what_waits_for_its_checkpoints_is_compared_with_a_floor_that_waits_too(self):
        runs = {"floor": [driven(2.0)], "floor-unwaited": [driven(1.0)], "rust": [driven(6.0)],
                "kclxx": [driven(3.0)], "kclxx-waited": [driven(4.0)]}
        summary = run.summary(A, runs)
        self.assertEqual({name: summary[name][CPU_GB.key]["ratio"] for name in summary},
                         {"floor": 1, "floor-unwaited": 1, "rust": 3, "kclxx": 3, "kclxx-waited": 2})


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

    def test_a_run_of_some_workloads_leaves_the_rest_of_the_baseline_alone(self):
        baseline.PATH.write_text(json.dumps({"B1": {"kclxx": {}}, "not guarded any more": {}}))
        baseline.save(results(2.0))
        self.assertEqual(sorted(baseline.load()), ["A1", "B1"])


class CommittedBaseline(unittest.TestCase):
    def test_it_has_a_ratio_for_each_figure_of_each_client_that_is_guarded(self):
        committed = baseline.load()
        self.assertEqual(sorted(committed), sorted(name for name, _ in baseline.guarded()))
        for name, figures in baseline.guarded():
            self.assertEqual(sorted(committed[name]), sorted(baseline.GUARDED_CLIENTS), name)
            self.assertTrue(committed[name], name)
            for client, values in committed[name].items():
                self.assertEqual(sorted(values), sorted(figure.key for figure in figures), (name, client))
                for key, value in values.items():
                    self.assertTrue(0 < value < 100, (name, client, key, value))


if __name__ == "__main__":
    unittest.main()
