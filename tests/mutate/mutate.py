#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Puts one small defect at a time into volt.h and checks whether the tests notice.

    make mutate [ONLY=regex] [SAMPLE=n] [SEED=s] [JOBS=n]
        ONLY    mutants whose "kind function text" matches, as in ONLY='^order volt__ring'
        SAMPLE  the number of mutants, chosen at random by SEED
        BUDGET  seconds that the tests of a mutant may take; the same again for the model checker,
                but unlimited for a memory order, 10
        PROGRAMS  only programs whose name matches run: a trial, without a verdict on the whole
        PRICE   seconds: scenarios of the model checker that take longer are left out, 20
        RECHECK=1 also runs the settled ones, and runs changed tests on those that survived
        LIST=1  names the mutants and runs nothing

All mutants are compiled into each program once, each behind a switch (which.h); those that cannot
stand behind one (initialisers in braces, case labels) are compiled alone, in their turn. A first
run of each test notes the places of volt.h that it reaches. A mutant then runs under the tests that
reach it, one after the other, cheap and narrow ones first, until one fails: unit tests in both
builds, slices of the simulation, scenarios of the fault injection, scenarios of the model checker.
Mutants of memory orders run under the model checker alone. A test that takes ten times as long as
without a mutant, two seconds at least, has failed; it then runs without the mutant, in case the
machine has become busy.

    killed       a test failed: its name is shown beside the mutant
    not viable   the compiler rejects it, or warns (all warnings are errors in `make check`)
    same code    the compiler generates the same instructions: no test can tell it from volt.h
    settled      settled.txt gives the reason why no test kills it
    SURVIVED     no test failed: one is missing, or the line is not needed, or both ways are right

The compiler checks only the mutants that the first tests do not kill: some of the killed ones would
have been rejected for a warning.

Verdicts are kept in build/mutate/results.tsv, so that an interrupted run continues where it
stopped. The key of a verdict is the text of the function and the change in it; it holds as long as
the test that killed is unchanged, or, for a survivor, as long as no program is new or changed: then
only those run on it, unless a group of settled.txt contains it. A change elsewhere in volt.h, or in
shared files of the tests, keeps a verdict. The price: a test that reached the mutant through
another function may no longer reach it, and the reverse. Without results.tsv all mutants run again.

The exit status is 1 if fewer than BAR % of the mutants that count are killed or settled, or if
settled.txt names one that is killed, or that no longer exists. Each survivor is printed, as the
question whether a test is missing: of ten about nine change nothing that could be seen, and are
not in settled.txt yet. Survivors of the kind `swap` do not count: two statements may often stand in
either order.
"""
import bisect
import collections
import concurrent.futures
import fcntl
import glob
import hashlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

HEADER = "volt.h"
TESTS = "tests"
TEST_DIRS = "unit api exhaustive stress regress".split()  # as in the Makefile
BUILD = "build/mutate"
SETTLED = "tests/mutate/settled.txt"
PRICE = float(os.environ.get("PRICE") or 20)
BUDGET = float(os.environ.get("BUDGET") or 10)
TRIAL = 2  # seconds of tests before the compiler checks whether there is a difference at all
BAR = 80
SLOWER, LEAST_LIMIT = 10, 2  # factor and seconds, at least, that a test may take
LATE = ("took too long", "time limit")

# In `line`, from `at` to `end`, `put` replaces the text; old and new are the whole line, squeezed.
# gone: (line, start, end) of a statement that has moved to `line`, or None.
Mutant = collections.namedtuple("Mutant", "kind function line at end put old new text number gone")


# ---- the source: the text that may be changed

CHECKS = re.compile(r"VOLT_ASSERT|VOLT__EXPECT|VOLT__REQUIRE|VOLT__SASSERT|VOLT__DEBUG_DO|^#|^\)")
HEAD = re.compile(r"^(?:static|VOLT_API|VOLT_POLL)\b[^;]*?\b(volt_\w+)\(")


def code_of(line):
    """The line without comments; strings and characters keep their length but not their text."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', lambda m: "@" * len(m.group()), line)
    return re.sub(r"//.*|/\*.*?\*/", lambda m: " " * len(m.group()), line).rstrip()


def functions_of(lines):
    """For each line the function whose body it belongs to, or None."""
    owner, name, is_body = [], None, False
    for line in lines:
        code = code_of(line)
        if not is_body:
            head = HEAD.match(code)
            name = head.group(1) if head else name if code.startswith(" ") else None
            is_body = bool(name) and "{" in code
            if name and not is_body and code.endswith(";"):
                name = None
        owner.append(name if is_body else None)
        if is_body and (code == "}" or (code[:1] != " " and code.endswith("}"))):
            name, is_body = None, False
    return owner


# ---- the operators: each yields (kind, start, end, replacement) for one line of code

WEAKER = {
    "load_acq": ["load_rlx"], "store_rel": ["store_rlx"],
    "xchg_acq": ["xchg_rlx"], "xchg_rel": ["xchg_rlx"],
    "cas_acq": ["cas_rlx"], "cas_rel": ["cas_rlx"],
    "cas_acq_rel": ["cas_acq_fail_acq", "cas_rel_fail_acq", "cas_acq_rel_fail_rlx"],
    "fence_sc": ["fence_acq_rel", "fence_none"],
}
for rmw in ("xchg", "add", "sub", "and", "or", "xor"):
    WEAKER[rmw + "_acq_rel"] = [rmw + "_acq", rmw + "_rel"]

COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
           "&&": "||", "||": "&&"}
STATEMENT = re.compile(  # a call, an assignment, a step: not a declaration, not a jump
    r"^ *(?:else )?(?!return\b|break\b|case\b|goto\b|if\b|for\b|while\b|do\b|else\b)"
    r"((?:\(void\))?\*{0,2}[A-Za-z_][\w.]*(?:->[\w.]+|\[[^\]]*\])*"
    r"(?:\(.*\)| [-+*/|&^%<>]{0,2}= .*|\+\+|--)|(?:\+\+|--)[\w>.-]+);$")
DROPPED = [("unlock", r"unlock"), ("lock", r"lock\("),
           ("wake", r"wake|notify|unpark|FUTEX_WAKE|schedule|parker"),
           ("reference", r"retain|release|ref|rt_pin|rt_unpin|unpinned|fd_pin|fd_unpin"),
           ("statement", r"")]


def orders(code):
    for m in re.finditer(r"\bvolt__(\w+)\(", code):
        for weaker in WEAKER.get(m.group(1), []):
            yield "order", m.start(1), m.end(1), weaker


def comparisons(code):
    for m in re.finditer(r"(?<= )(<=|>=|==|!=|<|>|&&|\|\|)(?= |$)", code):
        yield "compare", m.start(1), m.end(1), COMPARE[m.group(1)]


def constants(code):
    for m in re.finditer(r"(?<![\w.])(0|[1-9]\d*)(u?)(?![\w.])", code):
        for n in (int(m.group(1)) + 1, int(m.group(1)) - 1):
            if n >= 0:
                yield "constant", m.start(1), m.end(1), str(n)


def conditions(code):
    for m in re.finditer(r"\b(if|while) \(", code):
        depth, end = 1, m.end()
        while end < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        if depth == 0 and code[m.end():end - 1] not in ("0", "1"):
            for value in ("0", "1") if m.group(1) == "if" else ("0",):
                yield "condition", m.end(), end - 1, value


def drops(code, before):
    m = STATEMENT.match(code)
    if m and re.search(r"[;{}:)]$|^$|\belse$", before) and not m.group(1).startswith("(void)_"):
        if re.match(r"^\(void\)\w+$", m.group(1)):
            return
        kind = next(k for k, pattern in DROPPED if re.search(pattern, m.group(1)))
        yield kind, m.start(1), m.end(1), "(void)0"


# A transfer, or the begin or end of a hold: a statement beside it may have to stay there.
EDGE = re.compile(r"\bvolt__(?:\w+_(?:rel|acq_rel)|fence_\w+|lock|unlock)\(|unlock\(|FUTEX_WAKE|"
                  r"reactor_unpark\(|parker_\w+\(")


# An assignment or a step whose target is named by its last identifier.
STORE = re.compile(r"(?:\w+(?:->|\.))*(\w+)(?:\[[^]]*\])*(?: [-+*/|&^%<>]{0,2}= .*|\+\+|--)")
CALLED = re.compile(r"\b(?!sizeof\b|__typeof__\b)\w+\(")


def are_independent(a, b):
    """Two stores, none of which reads or writes the target of the other, and nothing is called."""
    a_is, b_is = STORE.fullmatch(a), STORE.fullmatch(b)
    if not a_is or not b_is or CALLED.search(a) or CALLED.search(b):
        return False
    return a_is.group(1) not in re.findall(r"\w+", b) and b_is.group(1) not in re.findall(r"\w+", a)


def swaps(lines, owner):
    """Adjacent statements of one line each in a block change places: of the kind `across` where one
    of the two is a transfer or an operation of a lock, else `swap`, unless they are independent."""
    before, first = "", None  # the code above, and (line, match) of the statement directly above
    for i, line in enumerate(lines):
        code = code_of(line)
        if not code.strip():
            continue
        m = STATEMENT.match(code)
        if not owner[i] or not m or CHECKS.search(code) or code.lstrip().startswith("else"):
            before, first = code.strip(), None
            continue
        if first and owner[first[0]] == owner[i] and first[1].start(1) == m.start(1):
            a, b = first[1].group(1), m.group(1)
            kind = "across" if EDGE.search(a) or EDGE.search(b) else "swap"
            if a != b and not (kind == "swap" and are_independent(a, b)):
                yield kind, first[0], first[1].start(1), first[1].end(1), i, m.start(1), m.end(1)
        # the only statement of an `if` without braces is in no block
        first = (i, m) if re.search(r"[;{}]$|^$", before) else None
        before = code.strip()


GUARDED = re.compile(r"^ *(if \(.*\) [^{}]*;)$")
HOLD = re.compile(r"\bvolt__lock\(|unlock\(")
FAR = 4  # lines that a statement moves at most


def moves(lines, owner):
    """Whole statements of one line, guarded ones too, leave a lock's hold: those up to FAR
    lines above an unlock move after it, those below a lock before it; of the kind `across`. Two
    neighbours without a guard change places in swaps()."""
    codes = [code_of(line) for line in lines]

    def whole(i, indent):
        """The statement's extent, if the line is one that may move and is in the block."""
        code = codes[i]
        m = STATEMENT.match(code) or GUARDED.match(code)
        if not m or CHECKS.search(code) or m.start(1) != indent or code.lstrip().startswith("else"):
            return None
        below = next((c for c in codes[i + 1:] if c.strip()), "")
        return None if below.lstrip().startswith("else") else m

    for j, code in enumerate(codes):
        hold = STATEMENT.match(code)
        if not owner[j] or not hold or not HOLD.search(code) or code.lstrip().startswith("else"):
            continue
        is_lock, indent = not re.search(r"unlock\(", code), hold.start(1)
        for far in range(1, FAR + 1):
            i = j + far if is_lock else j - far
            m = whole(i, indent) if owner[i] == owner[j] else None
            if not m:
                break
            if far > 1 or not STATEMENT.match(codes[i]):
                yield i, m.start(1), m.end(1) - (m.re is GUARDED), j, indent, hold.end(1), is_lock


def squeeze(text):
    return " ".join(text.split())


def all_mutants(lines, owner):
    number = collections.Counter()
    before = ""
    for i, line in enumerate(lines):
        code = code_of(line)
        if owner[i] and not CHECKS.search(code) and not code.endswith("\\"):
            at = code.find("{") + 1 if code[:1] != " " else 0
            for kind, start, end, new in [*orders(code), *drops(code, before), *comparisons(code),
                                          *conditions(code), *constants(code)]:
                if start < at:
                    continue
                text = code[:start] + new + code[end:]
                key = (kind, owner[i], squeeze(code), squeeze(text))
                number[key] += 1
                yield Mutant(kind, owner[i], i, start, end, new, squeeze(code), squeeze(text),
                             line[:start] + new + line[end:], number[key], None)
        before = code.strip() or before
    for kind, i, start, end, j, from_, to in swaps(lines, owner):
        a, b = lines[i][start:end], lines[j][from_:to]
        key = (kind, owner[i], f"{a}; {b};", f"{b}; {a};")
        number[key] += 1
        yield Mutant(kind, owner[i], i, start, end, f"{b}; {a}", *key[2:],
                     lines[i][:start] + f"{b}; {a}" + lines[i][end:], number[key], (j, from_, to))
    for i, start, end, j, from_, to, is_lock in moves(lines, owner):
        a, b = lines[i][start:end], lines[j][from_:to]
        put = f"{a}; {b}" if is_lock else f"{b}; {a}"
        old, new = f"{b}; ... {a};", f"{a}; {b};"
        if not is_lock:
            old, new = f"{a}; ... {b};", f"{b}; {a};"
        key = ("across", owner[j], old, new)
        number[key] += 1
        yield Mutant("across", owner[j], j, from_, to, put, *key[2:],
                     lines[j][:from_] + put + lines[j][to:], number[key], (i, start, end))


def with_mutant(lines, m):
    lines = list(lines)
    lines[m.line] = m.text
    if m.gone:
        line, start, end = m.gone
        lines[line] = lines[line][:start] + "(void)0" + lines[line][end:]
    return lines


# ---- places: the smallest part of a function that can be put behind a switch

class Puzzled(Exception):
    """The parser below does not understand the text."""


Place = collections.namedtuple("Place", "start end is_statement")
CONTROL = re.compile(r"(if|while|switch|for|do|else|case|default|return|goto|break|continue|static|"
                     r"typedef|enum|struct|VOLT_BEGIN|VOLT_AWAIT|VOLT_END|VOLT_RETURN)\b")
DECLARATION = re.compile(r"(?:(?:const|volatile|unsigned|struct|enum) )*[A-Za-z_]\w*(?: const)?"
                         r"(?: \**| ?\*+ ?)(?:const )?[A-Za-z_]\w* *(?:\[[^;]*?\] *)?"
                         r"(?:=(?!=)|,|;)")
CALL_ALONE = re.compile(r"[A-Za-z_]\w* *\(")


class Places:
    """The statements of one body, by recursive descent over text without comments and strings."""

    def __init__(self, text):
        self.text, self.found = text, []

    def skip(self, i):
        while i < len(self.text) and self.text[i].isspace():
            i += 1
        if i == len(self.text):
            raise Puzzled
        return i

    def close_of(self, i):
        """The index after the bracket that closes the one at i."""
        depth = 0
        for j in range(i, len(self.text)):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.text[j], 0)
            if depth == 0:
                return j + 1
        raise Puzzled

    def until(self, i, stops):
        """The first of `stops` outside brackets."""
        while True:
            i = self.skip(i)
            if self.text[i] in stops:
                return i
            if self.text[i] in ")]}":
                raise Puzzled
            i = self.close_of(i) if self.text[i] in "([{" else i + 1

    def expression(self, start, end):
        start = self.skip(start)
        while end > start and self.text[end - 1].isspace():
            end -= 1
        if end > start and self.text[start] != "{":
            self.found.append(Place(start, end, False))

    def declarators(self, i, semicolon):
        while i < semicolon:
            comma = min(self.until(i, ",;"), semicolon)
            equal = re.search(r"(?<![=!<>+*/|&^-])=(?!=)", self.text[i:comma])
            if equal:
                self.expression(i + equal.end(), comma)
            i = comma + 1

    def statement(self, i):
        """The index after the statement at i."""
        i = self.skip(i)
        text = self.text
        if text[i] == ";":
            return i + 1
        if text[i] == "{":
            i = self.skip(i + 1)
            while text[i] != "}":
                i = self.skip(self.statement(i))
            return i + 1
        word = CONTROL.match(text, i)
        word = word.group(1) if word else ""
        if word in ("if", "while", "switch"):
            open_ = text.index("(", i)
            behind = self.close_of(open_)
            self.expression(open_ + 1, behind - 1)
            i = self.statement(behind)
            rest = re.compile(r"\s*else\b").match(text, i) if word == "if" else None
            return self.statement(rest.end()) if rest else i
        if word == "for":
            open_ = text.index("(", i)
            first = self.until(open_ + 1, ";")
            second = self.until(first + 1, ";")
            behind = self.close_of(open_)
            if DECLARATION.match(text, open_ + 1):
                self.declarators(open_ + 1, first)
            else:
                self.expression(open_ + 1, first)
            self.expression(first + 1, second)
            self.expression(second + 1, behind - 1)
            return self.statement(behind)
        if word == "do":
            i = self.skip(self.statement(i + 2))
            if not re.compile(r"while\b").match(text, i):
                raise Puzzled
            open_ = text.index("(", i)
            behind = self.close_of(open_)
            self.expression(open_ + 1, behind - 1)
            return self.until(behind, ";") + 1
        label = re.compile(r"(?:case\b[^:;?]*|default|[A-Za-z_]\w*)\s*:").match(text, i)
        if label:
            return label.end()
        if word in ("else", "case"):
            raise Puzzled
        call = CALL_ALONE.match(text, i)
        if call and not word:  # of a macro, without semicolon
            behind = self.skip(self.close_of(call.end() - 1))
            if text[behind].isalnum() or text[behind] in "_{}":
                return self.statement(behind) if text[behind] == "{" else behind
        end = self.until(i, ";") + 1
        if word in ("return", "goto"):
            self.found.append(Place(i, end, True))
        elif not word and DECLARATION.match(text, i):
            self.declarators(i, end - 1)
        elif not word and STATEMENT.match(" ".join(text[i:end].split())):
            self.found.append(Place(i, end, True))
        return end


def strip_comments(lines):
    """The text without comments and the contents of strings; places stay the same."""
    plain, mask = [], []
    for line in lines:
        code = code_of(line).ljust(len(line))
        plain.append("".join(l if c in ("@", l) else " " for l, c in zip(line, code)))
        mask.append(code)
    return "\n".join(plain), "\n".join(mask)


class Switched:
    """volt.h with all mutants behind switches. number: of a mutant; place: its first number."""

    def __init__(self, lines, owner, mutants):
        self.number, self.place, self.alone = {}, {}, set()
        self.places = collections.defaultdict(set)  # of a function
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.source = "\n".join(lines)
        self.plain, self.mask = strip_comments(lines)
        places = sorted(self.places_of(lines, owner))
        begins = [p.start for p in places]
        groups = collections.defaultdict(list)
        self.gone = collections.defaultdict(list)  # of a place: mutants that move it away

        def place_at(line, at, end):
            i = bisect.bisect_right(begins, self.starts[line] + at) - 1
            return places[i] if i >= 0 and self.starts[line] + end <= places[i].end else None
        for m in mutants:
            place = place_at(m.line, m.at, m.end)
            other = place_at(*m.gone) if m.gone else None
            if not place or (m.gone and not (other and place.is_statement and other.is_statement)):
                self.alone.add(m)
                continue
            groups[place].append(m)
            if other:
                self.gone[other].append(m)
        for place in self.gone:
            groups[place]  # has a switch, if no mutant of its own
        self.groups = sorted(groups.items())
        n = 1
        for place, members in self.groups:
            for i, m in enumerate(members):
                self.number[m], self.place[m] = n + i, n
                self.places[m.function].add(n)
            n += len(members)
        self.size = n

    def places_of(self, lines, owner):
        i = 0
        while i < len(lines):
            end = i + 1
            while end < len(lines) and owner[end] == owner[i] and not (
                    owner[i] and HEAD.match(code_of(lines[end]))):
                end += 1
            if owner[i]:
                text = list(self.mask[self.starts[i]:self.starts[end]])
                bars = []
                for k in range(i, end):
                    if lines[k].startswith("#") or lines[k].endswith("\\") or (
                            k > i and lines[k - 1].endswith("\\")):
                        bars.append(self.starts[k])
                        for j in range(self.starts[k], self.starts[k] + len(lines[k])):
                            text[j - self.starts[i]] = " "
                parser = Places("".join(text))
                try:
                    parser.statement(parser.text.index("{"))
                    found = parser.found
                except (Puzzled, ValueError):
                    found = []
                for p in found:
                    p = Place(p.start + self.starts[i], p.end + self.starts[i], p.is_statement)
                    if not any(p.start <= b < p.end for b in bars):
                        yield p
            i = end

    def changed(self, place, m):
        start = self.starts[m.line] + m.at
        text = self.plain[place.start:start] + m.put + \
            self.plain[self.starts[m.line] + m.end:place.end]
        return text.replace("\n", " ")

    def text(self, left_out):
        """The header; the mutants of places whose line is in left_out are to be compiled alone."""
        parts, at = [], 0
        for place, members in self.groups:
            n = self.number[members[0]] if members else 0
            line = bisect.bisect_right(self.starts, place.start)
            last = bisect.bisect_right(self.starts, place.end - 1)
            if left_out & set(range(line, last + 1)):
                self.alone.update(members + self.gone[place])
                continue
            old = self.plain[place.start:place.end]
            changed = [self.changed(place, m) for m in members]
            if not members:
                new = old
            elif place.is_statement:
                tries = " else ".join(f"if (VM_IS({n + i})) {{ {c} }}"
                                      for i, c in enumerate(changed))
                new = f"{{ if (VM_IN({n}, {len(changed)})) {{ {tries} }} else {{ {old} }} }}"
            else:
                tries = "".join(f"VM_IS({n + i}) ? ({c}) : " for i, c in enumerate(changed[:-1]))
                new = f"(VM_IN({n}, {len(changed)}) ? {tries}({changed[-1]}) : ({old}))"
            for m in self.gone[place]:
                new = f"{{ if (VM_IS({self.number[m]})) {{ (void)0; }} else {{ {new} }} }}"
            parts += [self.source[at:place.start], new]
            at = place.end
        return "".join(parts) + self.source[at:]

    def write(self, path):
        """Leaves out mutants that do not compile, in a few rounds."""
        left_out = set()
        for _ in range(8):
            with open(path, "w") as f:
                f.write(self.text(left_out))
            p = subprocess.run(["gcc", *PLAIN, "-x", "c", "-DVOLT_IMPLEMENTATION", "-fsyntax-only",
                                "-fmax-errors=0", path], stderr=subprocess.PIPE, text=True)
            lines = {int(n) for n in re.findall(rf"{HEADER}:(\d+):\d+: error:", p.stderr)}
            if p.returncode == 0:
                break
            if not lines - left_out:
                sys.exit(f"mutate: cannot make the switches:\n{p.stderr[:2000]}")
            left_out |= lines
        for m in self.alone:
            self.number.pop(m, None)


# ---- the programs that run the header, and their parts that can run alone

PLAIN = "-std=gnu11 -w -I. -Itests/lib -include tests/mutate/which.h".split()
WARN = "-std=gnu11 -Wall -Wextra -Werror -I. -Itests/lib -include tests/mutate/which.h".split()
SMALL = ("-DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=20 -DVOLT_OVERFLOW_CAP=2 "
         "-DVOLT_WHEEL_BITS=2 -DVOLT_TICK_NS=1000000").split()  # as in the Makefile
WHICH = f"{BUILD}/which.o"
OBJCOPY = ("objcopy --rename-section .data=model_data --rename-section .bss=model_bss,alloc "
           "--redefine-sym memset=vmc_memset --redefine-sym memcpy=vmc_memcpy "
           "--redefine-sym memmove=vmc_memmove").split()
MODEL = "-fno-pie -fsanitize=thread -fno-builtin -Wno-tsan -Itests/model -O0 -c".split()
PARTS = "memory shadow search fiber world kernel tsan report main".split()
SLICES, SEEDS = 8, 250  # of the simulation

Ask = collections.namedtuple("Ask", "program name seconds reach")


def text_of(path):
    with open(path) as f:
        return f.read()


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def compiles(command):
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdout=quiet, stderr=quiet).returncode == 0


def included(path, seen):
    """The text of a test and of the files beside it that it includes."""
    if path in seen or os.path.basename(path) == HEADER or not os.path.exists(path):
        return ""
    seen.add(path)
    text = text_of(path)
    for name in re.findall(r'^#include "(.*)"', text, re.M):
        text += included(os.path.normpath(os.path.join(os.path.dirname(path), name)), seen)
    return text


BODY = re.compile(r"^(?:\w*TEST\w*|SCENARIO)\((\w+)\b(?:[^\n]*\}$|.*?^\})", re.M | re.S)


class Program:
    def __init__(self, name, source, kind, flags=()):
        self.name, self.source, self.kind, self.flags = name, source, kind, list(flags)
        self.digest = digest_of(included(source, set()) + " ".join(self.flags))
        self.file = name.replace("/", "_")
        self.bodies = {m.group(1): m.group() for m in BODY.finditer(text_of(source))}

    def proof(self, name):
        """The base of a verdict of one of its tests: the text of that test, if it is found."""
        if name not in self.bodies:
            return self.digest
        return digest_of(self.bodies[name] + " ".join(self.flags))

    def build(self, root, out, level="-O1"):
        """From the tree below `root`, laid out like the repository."""
        if self.kind != "model":
            return compiles(["gcc", f"-I{root}", *PLAIN, level, "-pthread", *self.flags,
                             f"{root}/{self.source}", WHICH, "-o", out])
        return compiles(["gcc", f"-I{root}", *PLAIN, *MODEL, self.source, "-o", out + ".o"]) and \
            compiles([*OBJCOPY, out + ".o"]) and \
            compiles(["gcc", "-no-pie", out + ".o", WHICH,
                      *[f"build/model/gcc/{p}.part.o" for p in PARTS], "-o", out])

    def names(self, path):
        def output(*command):
            return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        if self.kind == "sim":
            return [f"{i * SEEDS * 2}" for i in range(SLICES)]
        if self.kind == "fault":
            return sorted({line.split("/")[0] for line in output(path, "--list").split()})
        symbol = {"unit": r"\btest_fn_(\w+)$", "model": r"\bscenario_(\w+)$"}[self.kind]
        return re.findall(symbol, output("nm", path), re.M)

    def command(self, path, name):
        if self.kind == "sim":
            return [path, "brief=1", f"seeds={SEEDS}", f"from={name}"]
        if self.kind == "fault":
            return [path, "--jobs", "1", "--scenario", name]
        return [path, "-q", name] if self.kind == "model" else [path, name]


def all_programs():
    programs = []
    for path in sorted(itertools.chain(*(glob.glob(f"{TESTS}/{d}/*.c") for d in TEST_DIRS)),
                       key=os.path.basename):
        name = os.path.basename(path)[:-2]
        if name != "ring_caps":
            programs += [Program(name, path, "unit"), Program(name + "/small", path, "unit", SMALL)]
    programs += [Program("sim", f"{TESTS}/sim/main.c", "sim"),
                 Program("sim/small", f"{TESTS}/sim/main.c", "sim", SMALL),
                 Program("inject", f"{TESTS}/fault/fault.c", "fault")]
    for path in sorted(glob.glob(f"{TESTS}/model/model_*.c")):
        if f'\n#include "{HEADER}"' in included(path, set()):  # others are about the checker
            programs.append(Program(os.path.basename(path)[:-2], path, "model"))
    return programs


def run(program, path, name, limit, mutant=0, reach=None):
    """(did it fail, why): stops the program at the first line that reports a failure."""
    env = {**os.environ, "MUTANT": str(mutant), "TEST_SEED": "1",
           "TEST_TIMEOUT_FACTOR": str(limit / 20 if program.kind == "unit" else 1)}
    if reach:
        env["REACH"] = reach
    p = subprocess.Popen(program.command(path, name), stdout=subprocess.PIPE, env=env, text=True,
                         stderr=subprocess.STDOUT, errors="replace", start_new_session=True)
    late = threading.Event()

    def stop():
        late.set()
        os.killpg(p.pid, signal.SIGKILL)
    # A unit test is stopped by its harness, which knows its processes.
    timer = threading.Timer(limit + (2 if program.kind == "unit" else 0), stop)
    timer.start()
    failed, why = False, ""
    for line in p.stdout:
        if failed:
            why += "" if why in LATE else ": " + line.strip(" |\n")
            break
        m = re.match(r" *FAIL(?:ED:)? +(.*)", line)
        if m:
            failed, why = True, m.group(1).strip()
            if program.kind == "unit":
                why = re.sub(r"^\w+ +[\d.]+ s *", "", why)
    timer.cancel()
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.stdout.close()
    status = p.wait()
    if late.is_set():
        return True, "time limit"
    if program.kind == "model" and "limit:" in why:  # the search became too large: no verdict
        return False, why
    return failed or status > 0, squeeze(why)[:120] or f"exit status {status}"


def instructions(header):
    """The compiler's output for the implementation; None after an error."""
    where = "-fmacro-prefix-map=" + os.path.join(os.path.dirname(header), "=")
    p = subprocess.run(["gcc", *WARN, "-O2", "-x", "c", "-DVOLT_IMPLEMENTATION", where, "-S",
                        "-o", "-", header], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # without the names of files, which also appear around inline assembly
    lines = [l for l in p.stdout.splitlines() if not l.startswith((b"\t.file", b"# "))]
    return None if p.returncode else hashlib.sha256(b"\n".join(lines)).hexdigest()


def make_tree(root):
    """The tests, laid out like the repository."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    shutil.copytree(TESTS, f"{root}/{TESTS}", ignore=shutil.ignore_patterns("corpus", "model"))


class Session:
    def __init__(self):
        self.lines = text_of(HEADER).split("\n")
        self.owner = functions_of(self.lines)
        self.mutants = list(all_mutants(self.lines, self.owner))
        body = collections.defaultdict(list)
        for f, l in zip(self.owner, self.lines):
            body[f].append(squeeze(code_of(l)))
        self.body = {f: "\n".join(b) for f, b in body.items()}
        only = re.compile(os.environ.get("PROGRAMS") or "")
        self.programs = [p for p in all_programs() if only.search(p.name)]
        self.named = {p.name: p for p in self.programs}
        self.lock = threading.Lock()
        self.known, self.slots, self.asks = {}, [], []

    # ---- before the first mutant

    def prepare(self, jobs):
        compiles(["gcc", "-O1", "-c", "tests/mutate/which.c", "-o", WHICH])
        self.plain = instructions(HEADER)
        self.tree = f"{BUILD}/tree"
        make_tree(self.tree)
        self.switched = Switched(self.lines, self.owner, self.mutants)
        self.switched.write(f"{self.tree}/{HEADER}")
        self.header = digest_of(text_of(f"{self.tree}/{HEADER}"))
        os.makedirs(f"{BUILD}/programs", exist_ok=True)
        self.used = set()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for asks in pool.map(self.learn, self.programs):
                self.asks += asks
        for f in os.listdir(f"{BUILD}/programs"):  # of headers that no longer exist
            if f not in self.used:
                os.remove(f"{BUILD}/programs/{f}")
        self.slots = [f"{BUILD}/{i}" for i in range(jobs)]
        for slot in self.slots:
            make_tree(slot)
        n = len(self.switched.alone)
        print(f"mutate: {len(self.programs)} programs, {len(self.asks)} tests that pass; "
              f"{n} mutants are compiled alone", flush=True)

    def path(self, program):
        return f"{BUILD}/programs/{program.file}-{program.digest}-{self.header}"

    def learn(self, program):
        """The tests of the program that pass in time, with the places they reach; kept on disk."""
        path = self.path(program)
        log = path + (f".reach{PRICE:g}" if program.kind == "model" else ".reach")
        self.used |= {os.path.basename(path), os.path.basename(log)}
        if not os.path.exists(log):
            if not program.build(self.tree, path):
                print(f"{program.name}: does not compile", flush=True)
                return []
            if program.kind == "model":
                os.remove(path + ".o")
            with open(path + ".tmp", "w") as f:
                json.dump([self.first_run(program, path, name) for name in program.names(path)], f)
            os.rename(path + ".tmp", log)
        asks, tests = [], json.loads(text_of(log))
        in_time = [places for _, seconds, places, _ in tests if seconds is not None]
        if in_time and not any(in_time):
            sys.exit(f"mutate: {program.name} reaches no mutant: was it compiled with {HEADER}?")
        for name, seconds, places, why in tests:
            if why:
                print(f"{program.name} {name}: left out: {why}", flush=True)
            elif seconds is not None:
                asks.append(Ask(program, name, seconds, frozenset(places)))
        return asks

    def first_run(self, program, path, name):
        """(name, seconds or None: too expensive, places, reason of a failure)"""
        reach = path + ".bytes"
        limit = PRICE if program.kind == "model" else 10
        for _ in range(3):  # other processes may be using the machine
            with open(reach, "wb") as f:
                f.write(bytes(self.switched.size + 1))
            start = time.time()
            failed, why = run(program, path, name, limit, -1, reach)
            seconds = time.time() - start
            if not failed or seconds > limit:
                break
        with open(reach, "rb") as f:
            places = [i for i, b in enumerate(f.read()) if b]
        os.remove(reach)
        if seconds > limit:
            return name, None, [], None
        return name, seconds, places, why if failed else None

    # ---- one mutant

    def asks_of(self, mutant):
        """Tests and scenarios of the model checker that reach it: cheap and narrow ones first."""
        if mutant in self.switched.alone:
            places = self.switched.places[mutant.function]
            reaching = [a for a in self.asks if not places.isdisjoint(a.reach)]
        else:
            place = self.switched.place[mutant]
            reaching = [a for a in self.asks if place in a.reach]
        reaching.sort(key=lambda a: a.seconds * len(a.reach))
        models = [a for a in reaching if a.program.kind == "model"]
        others = [a for a in reaching if a.program.kind != "model"]
        return [] if mutant.kind == "order" else others, models

    def show(self, ask, path, number):
        """(did it fail, why). A late test runs again if the machine is slower than it was."""
        limit = max(LEAST_LIMIT, SLOWER * ask.seconds)
        failed, why = run(ask.program, path, ask.name, limit, number)
        if failed and why in LATE:
            start = time.time()
            run(ask.program, self.path(ask.program), ask.name, 10 * limit)
            more = SLOWER * (time.time() - start)
            if more > limit:
                failed, why = run(ask.program, path, ask.name, more, number)
        return failed, why

    def failing(self, mutant, asks, slot, budget):
        """(the test that fails or None, the tests that the budget left no time for)"""
        built, skipped = {}, []
        for a in asks:
            budget -= a.seconds
            if budget < 0:
                budget += a.seconds
                skipped.append(a)
                continue
            path, number = self.path(a.program), self.switched.number.get(mutant)
            if number is None:
                path, number = f"{slot}/{a.program.file}", 0
                if path not in built:
                    budget -= 3  # about its cost
                    built[path] = a.program.build(slot, path, "-O0")
                if not built[path]:
                    continue
            failed, why = self.show(a, path, number)
            if failed:
                return f"{a.program.name} {a.name}: {why}", []
        return None, skipped

    def judge(self, mutant, slot, old):
        """(verdict, the test that decided); old: programs that it is known to have survived."""
        units, models = self.asks_of(mutant)
        asks = [a for a in units if a.program.digest not in old]
        with open(f"{slot}/{HEADER}", "w") as f:
            f.write("\n".join(with_mutant(self.lines, mutant)))
        if mutant in self.switched.alone and instructions(f"{slot}/{HEADER}") is None:
            return "not viable", "the compiler"
        by, asks = self.failing(mutant, asks, slot, TRIAL)
        if not by and mutant.kind != "order":
            code = instructions(f"{slot}/{HEADER}")
            if code is None:
                return "not viable", "the compiler"
            if code == self.plain:
                return "same code", "the compiler"
        if not by:
            by, _ = self.failing(mutant, asks, slot, BUDGET)
        if not by:
            asks = [a for a in models if a.program.digest not in old]
            budget = {"order": 1e9, "across": 12 * BUDGET}.get(mutant.kind, BUDGET)
            by, _ = self.failing(mutant, asks, slot, budget)
        if by:
            return "killed", by
        return "SURVIVED", f"{len(units) + len(models)} tests" if units or models else "not reached"

    # ---- results of earlier runs

    def key(self, mutant):
        m = mutant
        return digest_of("\n".join([self.body[m.function], m.kind, m.old, m.new, str(m.number)]))

    def digests(self, mutant):
        return {p.name: p.digest for p in self.programs
                if mutant.kind != "order" or p.kind == "model"}

    def recall(self, mutant):
        """(verdict, the test or None, digests of programs that it has survived)"""
        digests, survived = self.digests(mutant), set()
        for verdict, by, proof in self.known.get(self.key(mutant), []):
            if verdict in ("not viable", "same code"):
                return verdict, by, survived
            if verdict == "killed" and proof == self.proof(by):
                return verdict, by, survived
            if verdict == "SURVIVED":
                survived |= set(proof.split(","))
                if survived >= set(digests.values()):
                    return verdict, by, survived
        return None, None, survived

    def has_survived(self, mutant):
        return any(verdict == "SURVIVED" for verdict, _, _ in self.known.get(self.key(mutant), []))

    def proof(self, by):
        name, test = by.split(" ")[:2]
        return self.named[name].proof(test.rstrip(":")) if name in self.named else "-"

    def record(self, mutant, verdict, by, seconds):
        proof = ",".join(self.digests(mutant).values()) if verdict == "SURVIVED" else \
            self.proof(by)
        with self.lock, open(f"{BUILD}/results.tsv", "a") as f:
            f.write("\t".join([self.key(mutant), proof, verdict, by, f"{seconds:.1f}", mutant.kind,
                               mutant.function, mutant.old, mutant.new]) + "\n")

    def load(self):
        if os.path.exists(f"{BUILD}/results.tsv"):
            for line in text_of(f"{BUILD}/results.tsv").splitlines():
                key, proof, verdict, by = line.split("\t")[:4]
                self.known.setdefault(key, []).append((verdict, by, proof))

    def run_one(self, mutant):
        verdict, by, survived = self.recall(mutant)
        if verdict:
            return mutant, verdict, by, 0
        with self.lock:
            slot = self.slots.pop()
        start = time.time()
        verdict, by = self.judge(mutant, slot, survived)
        seconds = time.time() - start
        with self.lock:
            self.slots.append(slot)
        self.record(mutant, verdict, by, seconds)
        return mutant, verdict, by, seconds


# ---- settled mutants

def key_of(m):
    return m.kind, m.function, m.old, m.new, m.number


class Settled:
    """settled.txt: single mutants, which do not run, and groups, which settle their survivors."""

    def __init__(self):
        self.single, self.groups, self.used = {}, [], set()
        what, old, new = None, None, None
        for line in text_of(SETTLED).splitlines() if os.path.exists(SETTLED) else []:
            if line.startswith(("mutant ", "mutants ")):
                what = line.split()
                old = new = ".*" if what[0] == "mutants" else None
            elif line.startswith("- "):
                old = squeeze(line[2:])
            elif line.startswith("+ "):
                new = squeeze(line[2:])
            elif line.startswith("= ") and what[0] == "mutant":
                number = int(what[3]) if len(what) > 3 else 1
                self.single[what[1], what[2], old, new, number] = line[2:]
            elif line.startswith("= "):
                fields = "\n".join(f"(?:{field})" for field in (what[1], what[2], old, new))
                self.groups.append((re.compile(fields), line[2:]))

    def group(self, m):
        text = "\n".join([m.kind, m.function, m.old, m.new])
        for i, (pattern, reason) in enumerate(self.groups):
            if pattern.fullmatch(text):
                self.used.add(i)
                return reason
        return None

    def wrong(self, mutants):
        """The named mutants that do not exist."""
        for key in set(self.single) - {key_of(m) for m in mutants}:
            yield "%s %s\n- %s\n+ %s" % key[:4]
        texts = ["\n".join([m.kind, m.function, m.old, m.new]) for m in mutants]
        for pattern, reason in self.groups:
            if not any(pattern.fullmatch(t) for t in texts):
                yield f"{pattern.pattern}\n= {reason}"


def describe(m):
    nth = f" {m.number}" if m.number > 1 else ""
    return f"mutant {m.kind} {m.function}{nth}    ({HEADER}:{m.line + 1})\n- {m.old}\n+ {m.new}"


# ---- the command

def choose(mutants):
    only = re.compile(os.environ.get("ONLY") or "")
    chosen = [m for m in mutants if only.search(f"{m.kind} {m.function} {m.old}")]
    n = int(os.environ.get("SAMPLE") or 0)
    if 0 < n < len(chosen):
        chosen = random.Random(int(os.environ.get("SEED") or 1)).sample(chosen, n)
    return sorted(chosen, key=lambda m: (m.kind != "order", m.line))


def share(n, total):
    return "%.1f %%" % (100 * n / total if total else 100)


def summary(results):
    verdicts = ["killed", "SURVIVED", "settled", "not viable", "same code"]
    table = collections.defaultdict(collections.Counter)
    spent = collections.Counter()
    for m, verdict, _, seconds in results:
        table[m.kind][verdict] += 1
        spent[m.kind] += seconds
    print("%-12s %9s %9s %9s %11s %10s %9s" % ("kind", *verdicts, "seconds"))
    for kind in sorted(table):
        print("%-12s %9d %9d %9d %11d %10d %9.0f" %
              (kind, *[table[kind][v] for v in verdicts], spent[kind]))
    total = sum(table.values(), collections.Counter())
    n_hints = table["swap"]["SURVIVED"]
    n_known = total["killed"] + total["settled"]
    n = n_known + total["SURVIVED"] - n_hints
    print("mutate: %d mutants, %d killed, %d survived, %d settled, %d not viable, %d same code; "
          "of %d that count %s are killed or settled, %d %% must be" %
          (sum(total.values()), *[total[v] for v in verdicts], n, share(n_known, n), BAR))
    return 100 * n_known >= BAR * n


def main():
    os.makedirs(BUILD, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    session, settled = Session(), Settled()
    chosen = choose(session.mutants)
    print(f"mutate: {len(session.mutants)} mutants of {HEADER}, {len(chosen)} chosen", flush=True)
    if os.environ.get("LIST"):
        for m in chosen:
            print(describe(m))
        wrong = list(settled.wrong(session.mutants))
        for what in wrong:
            print(f"settled, but no such mutant: {what}")
        return 1 if wrong else 0
    lock = open(f"{BUILD}/lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"mutate: another run is at work in {BUILD}")
    session.load()
    jobs = int(os.environ.get("JOBS") or 2)
    session.prepare(jobs)
    results, n_wrong = [], 0
    for what in settled.wrong(session.mutants):
        print(f"settled, but no such mutant: {what}")
        n_wrong += 1
    ask = []
    for m in chosen:
        if os.environ.get("RECHECK"):
            ask.append(m)
        elif key_of(m) in settled.single or (session.has_survived(m) and settled.group(m)):
            results.append((m, "settled", "", 0))
        else:
            ask.append(m)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for m, verdict, by, seconds in pool.map(session.run_one, ask):
            if key_of(m) in settled.single and verdict != "SURVIVED":
                print(f"settled, but {verdict} by {by}:\n{describe(m)}", flush=True)
                n_wrong += 1
            elif verdict == "SURVIVED" and (key_of(m) in settled.single or settled.group(m)):
                verdict = "settled"
            results.append((m, verdict, by, seconds))
            if verdict == "SURVIVED":
                print(f"SURVIVED {describe(m)}\n  {by}", flush=True)
    return 0 if summary(results) and n_wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
