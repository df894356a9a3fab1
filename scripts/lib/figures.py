# SPDX-License-Identifier: Apache-2.0
"""Puts what a script has measured into a document, docs/how-it-is-tested.md above all, between two marks."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/how-it-is-tested.md"


def replaced(document, name, text):
    """The document with `text` between the lines that mark the figures of this name."""
    marks = re.compile(rf"(<!-- begin: {re.escape(name)} -->\n).*?(<!-- end: {re.escape(name)} -->\n)", re.DOTALL)
    if len(marks.findall(document)) != 1:
        raise SystemExit(f"the document must have one part that is marked as '{name}'")
    return marks.sub(lambda m: m[1] + text.rstrip("\n") + "\n" + m[2], document)


def write(name, text, document=DOCUMENT):
    document.write_text(replaced(document.read_text(), name, text))
    print(f"written: {document.relative_to(ROOT)}, {name}")


def table(heading, rows):
    """In Markdown. Numbers get their thousands' separators."""
    def cell(value):
        return f"{value:,}" if isinstance(value, (int, float)) else "" if value is None else str(value)
    lines = ["| " + " | ".join(heading) + " |", "|---" + "|--:" * (len(heading) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in rows)])


def commit():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          check=True).stdout.strip()
