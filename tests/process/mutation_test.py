# SPDX-License-Identifier: Apache-2.0
"""scripts/mutation: which mutants there are, and what counts."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutation"))
import mutants
import mutation


def changes(line):
    return sorted(mutants.changes(line))


def outcome(verdict, number=1):
    return mutation.Outcome(mutants.Mutant("session/a.cpp", number, f"x{number};", ";"), verdict)


class Changes(unittest.TestCase):
    def test_comparisons_and_connections_are_exchanged(self):
        self.assertEqual(changes("if (a == b && c < 2) {"), sorted([
            "if (a != b && c < 2) {", "if (a == b || c < 2) {", "if (a == b && c <= 2) {", "if (a == b && c >= 2) {",
            "if (a == b && c < 3) {", "if (!(a == b && c < 2)) {"]))

    def test_a_condition_of_one_term_is_negated_once(self):
        self.assertEqual(changes("if (is_open()) {"), ["if (!(is_open())) {"])
        self.assertEqual(changes("if (!is_open()) {"), ["if (is_open()) {"])

    def test_statements_are_left_out(self):
        for line in ("go(1);", "a.b()->c(d);", "x_ = y;", "++count_;", "return;", "x_ += y;"):
            with self.subTest(line):
                self.assertIn(";", changes(line))

    def test_what_declares_or_returns_a_value_is_not_left_out(self):
        for line in ("int x = 1;", "const auto y = go();", "std::lock_guard lock(mutex_);", "return x;",
                     "using std::move;", "record::fields one;"):
            with self.subTest(line):
                self.assertNotIn(";", changes(line))

    def test_texts_comments_and_names_stay(self):
        for line in ('// if (a == b) go();', 'log("a == b && true");', '#include "a/b == c.hpp"', "is_true_();"):
            with self.subTest(line):
                self.assertLessEqual(set(changes(line)), {";"})

    def test_a_mutant_changes_its_line_alone(self):
        text = "void go() {\n  if (a) b();\n  c();\n}\n"
        found = mutants.of("x.cpp", text)
        self.assertEqual({m.number for m in found}, {2, 3})
        for m in found:
            changed = [n for n, (was, now) in enumerate(zip(text.splitlines(), mutants.mutated(text, m).splitlines()), 1)
                       if was != now]
            self.assertEqual(changed, [m.number])

    def test_the_sources_have_hundreds(self):
        for layer in ("session", "driver"):
            self.assertGreater(len(mutation.chosen_mutants([layer], 0)[layer]), 150)

    def test_those_of_some_files_can_be_chosen(self):
        some = mutation.chosen_mutants(["sharing"], 0, ["resident.cpp"])["sharing"]
        self.assertEqual({m.file for m in some}, {"kclxx/sharing/resident.cpp"})

    def test_a_sample_is_always_the_same(self):
        self.assertEqual(mutation.chosen_mutants(["session"], 5), mutation.chosen_mutants(["session"], 5))
        self.assertEqual(len(mutation.chosen_mutants(["session"], 5)["session"]), 5)


class Score(unittest.TestCase):
    def test_what_does_not_compile_or_changes_no_code_does_not_count(self):
        outcomes = [outcome("session_test", 1), outcome("timeout of simulation", 2), outcome("survived", 3),
                    outcome("does not compile", 4), outcome("same code", 5)]
        self.assertEqual(mutation.score(outcomes), (2, 3))


class Running(unittest.TestCase):
    def test_what_a_test_leaves_is_killed_though_it_has_a_group_of_its_own(self):
        with mutation.new_folder() as folder:
            file = Path(folder) / "process"
            status = mutation.run(["bash", "-c", f"set -m; sleep 1000 & echo $! > {file}"], 60)
            self.assertEqual(status, 0)
            left = Path("/proc") / file.read_text().strip() / "stat"
            self.assertTrue(not left.exists() or left.read_text().split()[2] == "Z")

    def test_one_that_takes_too_long_has_no_status(self):
        self.assertIsNone(mutation.run(["sleep", "1000"], 0.01))


class Linking(unittest.TestCase):
    source = Path("/src/kclxx/session/session.cpp")

    def test_the_mutant_takes_its_object_s_place(self):
        words = ["c++", "x/session/session.cpp.o", "b.o", "-o", "t", "l.a"]
        self.assertEqual(mutation.with_objects(words, {self.source: "m.o"}, "p"), ["c++", "m.o", "b.o", "-o", "p", "l.a"])

    def test_or_comes_before_the_library_that_has_it(self):
        words = ["c++", "b.o", "-o", "t", "l.a"]
        self.assertEqual(mutation.with_objects(words, {self.source: "m.o"}, "p"), ["c++", "m.o", "b.o", "-o", "p", "l.a"])


if __name__ == "__main__":
    unittest.main()
