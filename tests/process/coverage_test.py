# SPDX-License-Identifier: Apache-2.0
"""scripts/coverage: what llvm-cov exports, and what counts."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "coverage"))
import coverage

ONE = (b"  if (a) b();", b"  if (a && c) b();", b"  d();", b"  if (a) b();")


def at(line, column, end_column, value="true", file="x.cpp"):
    return coverage.Outcome(file, line, column, (line, end_column), value)


def exported(*branches):
    return {"data": [{"files": [{"filename": "x.cpp", "branches": branches}, {"filename": "x.hpp"}]}]}


class Outcomes(unittest.TestCase):
    def test_a_condition_has_two(self):
        self.assertEqual(coverage.outcomes(exported([1, 7, 1, 8, 3, 0, 0, 0, 4])),
                         {at(1, 7, 8, "true"): 3, at(1, 7, 8, "false"): 0})

    def test_instances_of_a_template_are_added_up(self):
        seen = coverage.outcomes(exported([1, 7, 1, 8, 3, 0, 0, 0, 4], [1, 7, 1, 8, 0, 2, 0, 0, 4]))
        self.assertEqual(seen, {at(1, 7, 8, "true"): 3, at(1, 7, 8, "false"): 2})

    def test_conditions_that_begin_at_the_same_place_are_two(self):
        seen = coverage.outcomes(exported([2, 7, 2, 8, 3, 0, 0, 0, 4], [2, 7, 2, 13, 1, 2, 0, 0, 4]))
        self.assertEqual(len(seen), 4)

    def test_what_the_compiler_decides_is_none(self):
        lines = (b"if constexpr (a) b();", b"while (true) {", b"while (trues) {")
        self.assertTrue(coverage.is_constant(at(1, 15, 16), lines))
        self.assertTrue(coverage.is_constant(at(2, 8, 12), lines))
        self.assertFalse(coverage.is_constant(at(3, 8, 13), lines))


class Names(unittest.TestCase):
    def test_the_line_the_condition_and_the_outcome(self):
        self.assertEqual(coverage.name(at(2, 12, 13, "false"), ONE), "x.cpp | if (a && c) b(); | c | false")

    def test_a_line_that_is_there_twice_is_named_with_the_one_above(self):
        self.assertEqual(coverage.name(at(4, 7, 8), ONE), "x.cpp | d(); / if (a) b(); | a | true")

    def test_columns_are_bytes(self):
        self.assertEqual(coverage.condition(at(1, 7, 8), ("\u00fc || a".encode(),)), "a")

    def test_a_condition_of_several_lines_is_named_by_its_first(self):
        several = coverage.Outcome("x.cpp", 2, 7, (3, 4), "true")
        self.assertEqual(coverage.condition(several, ONE), "a && c) b();")


class Share(unittest.TestCase):
    def test_what_is_listed_does_not_count(self):
        self.assertEqual(coverage.share(10, ["a", "b", "c"], {"a": "why"}), (7, 9))

    def test_only_all_are_100_per_cent(self):
        self.assertEqual(coverage.per_cent(9999, 10000), "99.9 %")
        self.assertEqual(coverage.per_cent(10000, 10000), "100.0 %")


class Unreached(unittest.TestCase):
    def test_each_is_on_a_line_of_the_present_sources(self):
        for entry in coverage.reasons.read(coverage.UNREACHED):
            with self.subTest(entry):
                file, where, condition, value = entry.split(" | ")
                text = (coverage.ROOT / "src" / file).read_text()
                self.assertTrue(where.split(" / ")[-1] in text, f"{file} has no such line")
                self.assertIn(condition, where)
                self.assertIn(value, ("true", "false"))


if __name__ == "__main__":
    unittest.main()
