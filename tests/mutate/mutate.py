#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Puts one small defect at a time into volt.h and asks whether the tests notice.

    make mutate [ONLY=regex] [SAMPLE=n] [SEED=s] [JOBS=n]
        ONLY    mutants whose "kind function text" matches, as in ONLY='^order volt__ring'
        SAMPLE  so many of them, chosen at random by SEED
        PRICE   processor seconds: scenarios of the model checker that take longer are left out, 1
        RECHECK=1 runs the settled ones, too
        LIST=1  names the mutants and runs nothing

A mutant that changes a memory order runs under the model checker (`make model` programs), which
are compiled once with all of these mutants in them, each behind a switch (which.c). The
others under the unit tests, and then under the model checker if their function holds an ordered
operation. Only programs that can reach the changed function run, cheapest first, until one fails.

    killed       a program failed: its name stands beside the mutant
    not viable   the compiler rejects it, or warns (all warnings are errors in `make check`)
    same code    the compiler makes the same instructions of it: no test can tell it from volt.h
    settled      settled.txt says why no test kills it
    SURVIVED     no program failed: a test is missing, or the line is not needed

Verdicts are kept in build/mutate/results.tsv, keyed by hashes of the mutated header and of the
tests that decided, so that a run which was cut off goes on where it stopped. The exit status is 1
if a mutant survived, or if settled.txt names one that is killed, or that no longer exists.
"""
import collections
import concurrent.futures
import fcntl
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HEADER = "volt.h"
TESTS = "tests"
BUILD = "build/mutate"
SETTLED = "tests/mutate/settled.txt"
WARN = "-std=gnu11 -Wall -Wextra -Werror -I. -include tests/mutate/weaker.h".split()
PRICE = float(os.environ.get("PRICE") or 1)  # processor seconds: dearer scenarios are not asked
LIMIT = 240  # seconds for one program; a test that hangs is stopped by its own harness, earlier

# In `line`, from `at` to `end`, `put` replaces what is there; old and new are the whole line,
# squeezed.
Mutant = collections.namedtuple("Mutant", "kind function line at end put old new text number")


# ---- the source: what may be changed

CHECKS = re.compile(r"VOLT_ASSERT|VOLT__EXPECT|VOLT__REQUIRE|VOLT__SASSERT|VOLT__DEBUG_DO|^#|^\)")
HEAD = re.compile(r"^(?:static|VOLT_API|VOLT_POLL)\b[^;]*?\b(volt_\w+)\(")


def code_of(line):
    """The line without comment; strings and characters keep their length but not their text."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', lambda m: "@" * len(m.group()), line)
    return re.sub(r"//.*|/\*.*?\*/", "", line).rstrip()


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


# ---- the operators: each gives (kind, start, end, replacement) for one line of code

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
DROPPED = [("unlock", r"unlock"), ("lock", r"volt__lock\("),
           ("wake", r"wake|notify|unpark|poke|FUTEX_WAKE|schedule|parker"),
           ("reference", r"retain|release|ref|visit|fd_enter|fd_leave"), ("statement", r"")]


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
                             line[:start] + new + line[end:], number[key])
        before = code.strip() or before


# ---- the killers: programs that run the mutated header

class Killer:
    def __init__(self, name, source, flags, is_model):
        self.name, self.source, self.is_model = name, source, is_model
        self.flags = flags
        self.reach = set()   # identifiers that it can arrive at
        self.digest = ""
        self.lock, self.passes = threading.Lock(), None
        self.scenarios = []  # of a model program: those that pass without a mutant


SMALL = "-DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=5 -DVOLT_WHEEL_BITS=2".split()
UNIT = [("word", []), ("queues", SMALL), ("queues", []), ("timers", SMALL), ("timers", []),
        ("brackets", []), ("task", []), ("compose", []), ("group", []), ("cpus", []),
        ("public", []), ("misuse", []), ("net", []), ("regress", []), ("history", []),
        ("idle", []), ("sched", SMALL), ("sched", []), ("fault", []), ("rescue", [])]
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")


def text_of(path):
    with open(path) as f:
        return f.read()


def included(path, seen):
    """The text of a test and of the files beside it that it includes."""
    if path in seen or os.path.basename(path) == HEADER or not os.path.exists(path):
        return ""
    seen.add(path)
    text = text_of(path)
    for name in re.findall(r'^#include "(.*)"', text, re.M):
        text += included(os.path.normpath(os.path.join(os.path.dirname(path), name)), seen)
    return text


def uses_of(lines, owner):
    """Identifier -> the identifiers in its body: of functions and of macros."""
    uses = collections.defaultdict(set)
    macro = None
    for i, line in enumerate(lines):
        define = re.match(r"# *define (\w+)", line)
        name = define.group(1) if define else macro or owner[i]
        if name:
            uses[name].update(IDENTIFIER.findall(code_of(line)))
        macro = name if line.endswith("\\") and (define or macro) else None
    return uses


def all_killers(lines, owner):
    killers = [Killer("test_" + n + ("/small" if f else ""), f"{TESTS}/test_{n}.c", f, False)
               for n, f in UNIT]
    killers += [Killer(f[:-2], f"{TESTS}/model/{f}", [], True)
                for f in sorted(os.listdir(f"{TESTS}/model"))
                if re.match(r"model_(?!litmus).*\.c$", f)]
    uses = uses_of(lines, owner)
    for k in killers:
        text = included(k.source, set())
        k.digest = hashlib.sha256((text + " ".join(k.flags)).encode()).hexdigest()[:16]
        todo = set(IDENTIFIER.findall(text)) & uses.keys()
        while todo:
            name = todo.pop()
            k.reach.add(name)
            todo |= (uses[name] & uses.keys()) - k.reach
    return killers


# ---- running one mutant

def run(command, limit, is_model=False, number=0):
    """(did it fail, why): stops the program at the first line that reports a failure."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace", start_new_session=True,
                         env={**os.environ, "MUTANT": str(number)})
    late = threading.Event()

    def stop():
        late.set()
        os.killpg(p.pid, signal.SIGKILL)
    timer = threading.Timer(limit, stop)
    timer.start()
    failed, why = False, ""
    for line in p.stdout:
        if failed:
            why += ": " + line.strip()
            break
        m = re.match(r" *FAIL +(\S+)", line)
        if m:
            failed, why = True, m.group(1)
    timer.cancel()
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.stdout.close()
    status = p.wait()
    if late.is_set():
        return not is_model, "time limit"
    if is_model and "limit:" in why:  # the search became too large: no verdict
        return False, why
    return failed or status > 0, why or f"exit status {status}"


def compiles(command):
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdout=quiet, stderr=quiet).returncode == 0


def instructions(header):
    """What the compiler makes of the implementation; None if it complains."""
    p = subprocess.run(["gcc", *WARN, "-O1", "-DNDEBUG", "-x", "c", "-DVOLT_IMPLEMENTATION", "-S",
                        "-o", "-", header], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lines = [l for l in p.stdout.splitlines() if not l.startswith(b"\t.file")]
    return None if p.returncode else hashlib.sha256(b"\n".join(lines)).hexdigest()


OBJCOPY = ("objcopy --rename-section .data=model_data --rename-section .bss=model_bss,alloc "
           "--redefine-sym memset=vmc_memset --redefine-sym memcpy=vmc_memcpy "
           "--redefine-sym memmove=vmc_memmove").split()
MODEL = ("gcc -std=gnu11 -w -include tests/mutate/weaker.h -fno-pie -O0 -fsanitize=thread "
         "-fno-builtin -Wno-tsan -Itests/model -c").split()
PARTS = "memory shadow search fiber world kernel tsan report main".split()


def build_model(killer, program, flags):
    return compiles([*MODEL, *flags, killer.source, "-o", program + ".o"]) and \
        compiles([*OBJCOPY, program + ".o"]) and \
        compiles(["gcc", "-no-pie", program + ".o", f"{BUILD}/which.o",
                  *[f"build/model/gcc/{p}.part.o" for p in PARTS], "-o", program])


def fails(killer, slot):
    """None, or why the killer fails on the header in the directory `slot`."""
    program = f"{slot}/{killer.name.replace('/', '_')}"
    if killer.is_model:
        ok = build_model(killer, program, [f"-I{slot}"])
        command = [program, "-q", *killer.scenarios]
    else:
        ok = compiles(["gcc", "-std=gnu11", "-w", "-include", "tests/mutate/weaker.h", "-O1",
                       "-pthread", *killer.flags, f"{slot}/{killer.source}", "-o", program])
        command = [program]
    if not ok:
        return "does not compile"
    failed, why = run(command, LIMIT, killer.is_model)
    os.remove(program)
    return squeeze(why)[:140] if failed else None


# ---- all order mutants in one program

class Orders:
    """volt.h with a switch at each ordered site, and the model programs built from it."""

    def __init__(self, lines, mutants):
        self.dir = f"{BUILD}/orders-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"
        self.number = {}  # of a mutant, from 1
        sites = collections.defaultdict(list)
        for n, m in enumerate((m for m in mutants if m.kind == "order"), 1):
            self.number[m] = n
            sites[m.line, m.at].append((n, m))
        lines, defines = list(lines), []
        for (line, at), choices in sorted(sites.items(), reverse=True):
            end = choices[0][1].end
            name = lines[line][at:end]
            lines[line] = f"{lines[line][:end]}_{choices[0][0]}{lines[line][end:]}"
            body = "".join(f"volt_mutant_is({n}) ? volt__{m.put}(__VA_ARGS__) : "
                           for n, m in choices)
            defines.append(f"#define volt__{name}_{choices[0][0]}(...) "
                           f"({body}volt__{name}(__VA_ARGS__))")
        os.makedirs(self.dir, exist_ok=True)
        with open(f"{self.dir}/{HEADER}", "w") as f:
            f.write("\n".join(lines))
        with open(f"{self.dir}/orders.h", "w") as f:
            f.write("\n".join(["int volt_mutant_is(int number);", *defines, ""]))

    def build(self, killer):
        """1 if the program exists; notes which of its scenarios pass without a mutant, in time."""
        with killer.lock:
            if killer.passes is None:
                for status, name, seconds in self.verdicts(killer):
                    if status == "FAIL":
                        print(f"{killer.name}: {name} fails without a mutant: left out", flush=True)
                    elif float(seconds) <= PRICE:
                        killer.scenarios.append(name)
                killer.passes = bool(killer.scenarios)
            return killer.passes

    # (ok or FAIL, scenario, seconds), as the program prints them; kept for the next run.
    def verdicts(self, killer):
        log = f"{self.dir}/{killer.name}-{killer.digest}"
        if not os.path.exists(log) and build_model(killer, self.program(killer), [
                f"-I{self.dir}", "-include", f"{self.dir}/orders.h"]):
            with open(log + ".tmp", "w") as f:
                subprocess.run([self.program(killer), "-q"], stdout=f)
            os.rename(log + ".tmp", log)
        text = text_of(log) if os.path.exists(log) else ""
        return re.findall(r"^(ok|FAIL) +(\w+) .* ([\d.]+) s$", text, re.M)

    def program(self, killer):
        return f"{self.dir}/{killer.name}"

    def fails(self, killer, mutant):
        if not self.build(killer):
            return None
        failed, why = run([self.program(killer), "-q", *killer.scenarios], LIMIT, True,
                          self.number[mutant])
        return squeeze(why)[:140] if failed else None


ORDERED = re.compile(r"volt__(?:\w+_(?:acq|rel|acq_rel)|fence_sc)\b")


class Session:
    def __init__(self):
        with open(HEADER) as f:
            self.lines = f.read().split("\n")
        self.owner = functions_of(self.lines)
        self.killers = all_killers(self.lines, self.owner)
        self.ordered = {f for f, l in zip(self.owner, self.lines) if f and ORDERED.search(l)}
        self.slots = []
        self.lock = threading.Lock()
        self.known = {}

    def killers_of(self, mutant):
        reaching = [k for k in self.killers if mutant.function in k.reach]
        models = sorted([k for k in reaching if k.is_model], key=lambda k: len(k.reach))
        if mutant.kind == "order":
            return models
        units = [k for k in reaching if not k.is_model]
        return units + (models if mutant.function in self.ordered else [])

    def mutated(self, mutant):
        lines = list(self.lines)
        lines[mutant.line] = mutant.text
        return "\n".join(lines)

    def judge(self, mutant, slot):
        """(verdict, by whom)"""
        header = f"{slot}/{HEADER}"
        with open(header, "w") as f:
            f.write(self.mutated(mutant))
        if mutant.kind == "order":
            return self.judge_order(mutant)
        code = instructions(header)
        if code is None:
            return "not viable", "the compiler"
        if code == self.plain:
            return "same code", "the compiler"
        for k in self.killers_of(mutant):
            if k.is_model and not self.orders.build(k):
                continue
            why = fails(k, slot) if k.passes is not False else None
            if why and self.is_sound(k):
                return "killed", f"{k.name}: {why}"
        return "SURVIVED", ""

    def judge_order(self, mutant):
        for k in self.killers_of(mutant):
            why = self.orders.fails(k, mutant)
            if why:
                return "killed", f"{k.name}: {why}"
        return "SURVIVED", ""

    # A test that kills must pass on volt.h as it is; one that does not is left out.
    def is_sound(self, killer):
        with killer.lock:
            if killer.passes is None:
                shutil.copy(HEADER, self.intact)
                why = fails(killer, self.intact)
                killer.passes = not why
                if why:
                    print(f"{killer.name} fails without a mutant: {why}", flush=True)
            return killer.passes

    # The key of a verdict: the header, and the tests that decided it.
    def keys(self, mutant):
        h = hashlib.sha256(self.mutated(mutant).encode()).hexdigest()[:16]
        used = self.killers_of(mutant)
        every = str(PRICE) + "".join(k.digest for k in used)
        every = hashlib.sha256(every.encode()).hexdigest()[:16]
        return h, every, {k.name: k.digest for k in used}

    def recall(self, mutant):
        h, every, digests = self.keys(mutant)
        for verdict, by, proof in self.known.get(h, []):
            if verdict in ("not viable", "same code") or proof == every:
                return verdict, by
            if verdict == "killed" and proof == digests.get(by.split(":")[0]):
                return verdict, by
        return None

    def record(self, mutant, verdict, by, seconds):
        h, every, digests = self.keys(mutant)
        proof = digests.get(by.split(":")[0], every)
        with self.lock, open(f"{BUILD}/results.tsv", "a") as f:
            f.write("\t".join([h, proof, verdict, by, f"{seconds:.1f}", mutant.kind,
                               mutant.function, mutant.old, mutant.new]) + "\n")

    def load(self):
        if os.path.exists(f"{BUILD}/results.tsv"):
            for line in text_of(f"{BUILD}/results.tsv").splitlines():
                h, proof, verdict, by = line.split("\t")[:4]
                self.known.setdefault(h, []).append((verdict, by, proof))

    # A directory for each job, laid out like the repository: tests include "../volt.h".
    def prepare(self, jobs):
        self.intact = f"{BUILD}/intact"
        self.slots = [f"{BUILD}/{i}" for i in range(jobs)]
        for slot in [self.intact, *self.slots]:
            shutil.rmtree(slot, ignore_errors=True)
            os.makedirs(f"{slot}/tests")
            for f in os.listdir(TESTS):
                if f.endswith((".c", ".h")):
                    shutil.copy(f"{TESTS}/{f}", f"{slot}/tests")

    def run_one(self, mutant):
        known = self.recall(mutant)
        if known:
            return mutant, *known, 0
        with self.lock:
            slot = self.slots.pop()
        start = time.time()
        verdict, by = self.judge(mutant, slot)
        seconds = time.time() - start
        with self.lock:
            self.slots.append(slot)
        self.record(mutant, verdict, by, seconds)
        return mutant, verdict, by, seconds


# ---- what is settled

def key_of(m):
    return m.kind, m.function, m.old, m.new, m.number


def load_settled():
    """settled.txt -> key of a mutant -> reason."""
    settled, kind, function, number, old, new = {}, None, None, 1, None, None
    if not os.path.exists(SETTLED):
        return settled
    for line in text_of(SETTLED).splitlines():
        if line.startswith("mutant "):
            kind, function, *nth = line.split()[1:]
            number = int(nth[0]) if nth else 1
        elif line.startswith("- "):
            old = squeeze(line[2:])
        elif line.startswith("+ "):
            new = squeeze(line[2:])
        elif line.startswith("= "):
            settled[(kind, function, old, new, number)] = line[2:]
    return settled


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
    print("mutate: %d mutants, %d killed, %d survived, %d settled, %d not viable, %d same code" %
          (sum(total.values()), *[total[v] for v in verdicts]))
    return total["SURVIVED"]


def main():
    os.makedirs(BUILD, exist_ok=True)
    session, settled = Session(), load_settled()
    mutants = list(all_mutants(session.lines, session.owner))
    chosen = choose(mutants)
    print(f"mutate: {len(mutants)} mutants of {HEADER}, {len(chosen)} chosen", flush=True)
    if os.environ.get("LIST"):
        for m in chosen:
            print(describe(m))
        return 0
    lock = open(f"{BUILD}/lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"mutate: another run is at work in {BUILD}")
    session.load()
    session.plain = instructions(HEADER)
    session.orders = Orders(session.lines, mutants)
    compiles(["gcc", "-O1", "-c", "tests/mutate/which.c", "-o", f"{BUILD}/which.o"])
    jobs = int(os.environ.get("JOBS") or 2)
    session.prepare(jobs)
    results, n_wrong = [], 0
    for key in set(settled) - {key_of(m) for m in mutants}:
        print("settled, but no such mutant: %s %s\n- %s\n+ %s" % key[:4])
        n_wrong += 1
    ask = []
    for m in chosen:
        if key_of(m) in settled and not os.environ.get("RECHECK"):
            results.append((m, "settled", settled[key_of(m)], 0))
        else:
            ask.append(m)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for m, verdict, by, seconds in pool.map(session.run_one, ask):
            if key_of(m) in settled:
                if verdict == "SURVIVED":
                    verdict = "settled"
                else:
                    print(f"settled, but {verdict} by {by}:\n{describe(m)}", flush=True)
                    n_wrong += 1
            results.append((m, verdict, by, seconds))
            if verdict == "SURVIVED":
                print(f"SURVIVED {describe(m)}", flush=True)
    n_wrong += sum(k.passes is False for k in session.killers)
    return 1 if summary(results) + n_wrong else 0


sys.exit(main())
