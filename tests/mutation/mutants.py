# SPDX-License-Identifier: Apache-2.0
"""The mutants of a C++ file: one small change in one line each, of the kinds that programmers make by mistake."""
import hashlib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    file: str  # below src/
    number: int  # of the line, from 1
    before: str  # the line, without its indentation
    after: str

    @property
    def rank(self):
        """A sample is those with the lowest."""
        return hashlib.sha256(f"{self.file} {self.before} {self.after}".encode()).hexdigest()


SWAPS = [(" == ", " != "), (" != ", " == "), (" < ", " <= "), (" < ", " >= "), (" > ", " >= "), (" > ", " <= "),
         (" <= ", " < "), (" <= ", " > "), (" >= ", " > "), (" >= ", " < "), (" && ", " || "), (" || ", " && "),
         (" + ", " - "), (" - ", " + "), (" += ", " -= "), (" * ", " + "), ("++", "--"), ("true", "false"),
         ("false", "true"), ("std::min(", "std::max("), ("std::max(", "std::min("), ("!", "")]
WORDS = re.compile(r"\b(true|false)\b")
# Declarations, types, includes, and what is nothing but layout.
NO_CODE = re.compile(r"^(#|using |namespace |template|struct |class |enum |static_assert|public:|private:|}|{)")
STATEMENT = re.compile(r"^(?!return\b|using\b|case\b|const\b|auto\b|constexpr\b|break;|continue;|else\b|throw\b)"
                       r"(\+\+|--)?[A-Za-z_][\w:.\->*\[\]() ]*?( [+-]?= .*|\(.*\)|\+\+|--)?;$")
DECLARATION = re.compile(r"^(static )?[\w:<>, ]+[&*]? \w+( = .*|\{.*\}|\(.*\))?;$")
CONDITION = re.compile(r"\b(if|while) \(")


def code_of(line):
    """The line up to its comment, with string and character literals blanked out, as long as it was."""
    text = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', lambda m: m[0][0] + "~" * (len(m[0]) - 2) + m[0][0], line)
    comment = text.find("//")
    return text if comment < 0 else text[:comment].rstrip()


def closing(text, opening):
    """Where the parenthesis at `opening` closes; None when not in this line."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def changes(line):
    """Each changed form of one line without its indentation."""
    code = code_of(line)
    if not code or NO_CODE.match(code):
        return
    for old, new in SWAPS:
        for found in re.finditer(re.escape(old), code):
            if old in ("true", "false") and not any(w.span() == found.span() for w in WORDS.finditer(code)):
                continue
            if old == "!" and code[found.end():found.end() + 1] == "=":
                continue
            if old in (" + ", " - ") and '"' in code:  # of texts
                continue
            yield line[:found.start()] + new + line[found.end():]
    for found in CONDITION.finditer(code):
        end = closing(code, found.end() - 1)
        # Of a single term another change has the same effect.
        if end is not None and re.search(r"&&|\|\||^(?!.*( [!=<>]=? |!))", code[found.end():end]):
            yield line[:found.end()] + "!(" + line[found.end():end] + ")" + line[end:]
    for found in re.finditer(r"(?<![\w.'])\d+(?![\w.'])", code):
        yield line[:found.start()] + str(int(found[0]) + 1) + line[found.end():]
    found = re.fullmatch(r"return (.+);", code)
    if found and found[1] not in ("true", "false") and closing_is_balanced(found[1]) and is_boolean(found[1]):
        yield "return !(" + line[found.start(1):found.end(1)] + ");"
    if STATEMENT.match(code) and closing_is_balanced(code) and not is_declaration(code):
        yield ";"
    if code == "return;":
        yield ";"
    guarded = re.fullmatch(r"(if \(.*\)) (\S.*;)", code)
    if guarded and closing_is_balanced(guarded[1]):
        yield ";"


def closing_is_balanced(text):
    return text.count("(") == text.count(")") and text.count("{") == text.count("}")


def is_boolean(text):
    return bool(re.search(r" (==|!=|<|>|<=|>=|&&|\|\|) |^!|\b(is|has|can|may|was|should)_\w+", text))


def is_declaration(code):
    """`int x = 1;` and `lock guard(mutex);`, which nothing compiles without. A call has no blank before its name."""
    head = re.split(r"[=({]", code, maxsplit=1)[0].strip()
    return bool(DECLARATION.match(code)) and " " in head


def of(file, text):
    seen, result = set(), []
    lines = [line.strip() for line in text.splitlines()]
    for number, stripped in enumerate(lines, 1):
        if not stripped.startswith("//"):
            for after in changes(stripped):
                mutant = Mutant(file, number, stripped, after)
                if after != stripped and (number, after) not in seen:
                    seen.add((number, after))
                    result.append(mutant)
    return result


def mutated(text, mutant):
    lines = text.splitlines(keepends=True)
    line = lines[mutant.number - 1]
    indentation = line[:len(line) - len(line.lstrip())]
    lines[mutant.number - 1] = indentation + mutant.after + "\n"
    return "".join(lines)
