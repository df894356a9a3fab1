# SPDX-License-Identifier: Apache-2.0
"""The table of scripts/compare-clients, from the JUnit files that `kclxx check` has written.

usage: compare_clients.py RESULTS SKIPPED
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


class Verdict:
    def __init__(self, case):
        failure = case.find("failure")
        skipped = case.find("skipped")
        self.text = "**fail**" if failure is not None else "–" if skipped is not None else "pass"
        self.seen = failure.get("message") if failure is not None else None


def read(path):
    return {case.get("name"): Verdict(case) for case in ElementTree.parse(path).iter("testcase")}


def table(clients):
    names = [name for name, _, _ in clients]
    rows = ["| rule | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for rule in clients[0][2]:
        rows.append("| `{}` | {} |".format(rule, " | ".join(c[2][rule].text for c in clients)))
    counts = []
    for _, _, verdicts in clients:
        texts = [verdict.text for verdict in verdicts.values()]
        counts.append("{} pass, {} fail, {} –".format(
            texts.count("pass"), texts.count("**fail**"), texts.count("–")))
    rows.append("| **all {}** | {} |".format(len(clients[0][2]), " | ".join(counts)))
    return rows


def failures(name, verdicts):
    """Each thing that was seen, once, with the rules that it broke."""
    rules_by_seen = {}
    for rule, verdict in verdicts.items():
        if verdict.seen:
            rules_by_seen.setdefault(verdict.seen, []).append(rule)
    if not rules_by_seen:
        return ["", f"{name}: no failure."]
    lines = ["", f"{name}:"]
    for seen, rules in rules_by_seen.items():
        # As in Markdown: no line of the child's may become markup.
        text = re.sub(r"([*_<>|`])", r"\\\1", seen)
        lines.append("- {}: {}.".format(", ".join(f"`{rule}`" for rule in rules), text))
    return lines


def report(results, skipped):
    clients = []
    for line in (results / "clients").read_text().splitlines():
        name, version = line.split("\t")
        clients.append((name, version, read(results / f"{name}.xml")))
    lines = [f"- {name}: {version}" for name, version, _ in clients]
    lines += [f"- skipped: {line}" for line in skipped.read_text().splitlines()
              if line.split(":")[0] in ("python", "node", "rust")]
    lines += ["", *table(clients), "", "What was seen where a rule was broken:"]
    for name, _, verdicts in clients:
        lines += failures(name, verdicts)
    return "\n".join(lines) + "\n"


def main(arguments):
    print("\n" + report(pathlib.Path(arguments[0]), pathlib.Path(arguments[1])))


main(sys.argv[1:])
