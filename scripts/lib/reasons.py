# SPDX-License-Identifier: Apache-2.0
"""A list with a reason for each entry: a line for the entry, and under it, indented, a line for the reason. An entry
names a line of a source by its text."""


class BadList(Exception):
    pass


def read(path):
    """{entry: reason}"""
    return parse(path.read_text(), path)


def parse(text, path):
    found, entry = {}, None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            if entry is None:
                raise BadList(f"{path}: a reason without an entry: {line.strip()}")
            found[entry] = line.strip()
            entry = None
        else:
            if entry is not None:
                raise BadList(f"{path}: no reason for {entry}")
            entry = line
    if entry is not None:
        raise BadList(f"{path}: no reason for {entry}")
    return found


def above(lines, number):
    """As many lines above this one as no other has above it; with " / " between them."""
    for count in range(6):
        part = lines[max(0, number - 1 - count):number]
        same = sum(lines[at:at + len(part)] == part for at in range(len(lines)))
        if same == 1:
            break
    return " / ".join(part[:-1])
