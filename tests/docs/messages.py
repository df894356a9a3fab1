# SPDX-License-Identifier: Apache-2.0
"""The texts in the sources: each string literal of several words, with the calls that it is an argument of."""
import re

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/|^\#include[^\n]*)
  | (?P<raw>R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<open>[({\[])
  | (?P<close>[)}\]])
  | (?P<other>[^\s\w])
""", re.VERBOSE | re.DOTALL | re.MULTILINE)


def literals(source):
    """(text, the names before the brackets around it, outermost first); adjacent literals are one."""
    calls, last, found, pending = [], "", [], None
    for token in TOKEN.finditer(source):
        kind, text = token.lastgroup, token.group(0)
        if kind == "delimiter":
            kind = "raw"
        if kind == "comment":
            continue
        if kind in ("string", "raw"):
            value = text[1:-1] if kind == "string" else re.match(r'R"([^(]*)\((.*)\)\1"', text, re.DOTALL)[2]
            if kind == "string":
                value = value.replace(r"\"", '"').replace(r"\\", "\\")
            pending = (pending[0] + value, pending[1]) if pending else (value, tuple(calls))
            continue
        if pending:
            found.append(pending)
            pending = None
        if kind == "open":
            calls.append(last)
            last = ""
        elif kind == "close":
            if calls:
                calls.pop()
            last = ""
        else:
            last = text if kind == "name" else ""
    return found


def javascript_failures(source):
    """The texts of `new Failure(...)` and `new Error(...)`, with %s for what is filled in."""
    for call in re.finditer(r"new (?:Failure|Error)\(", source):
        end = source.find(");", call.end())
        for text in re.findall(r"`[^`]*`|'(?:[^'\\]|\\.)*'", source[call.end():end]):
            yield re.sub(r"\$\{[^}]*\}", "%s", text[1:-1]).replace("\\'", "'")
