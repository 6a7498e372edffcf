#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Runs each target of the Makefile that tests something, and records the results in a file.

    make everything                     all that have not passed yet on this tree
    make everything ONLY='cross-* soak' these; a name may be a shell pattern
    make everything SHOW=1              runs nothing, prints the file
        AGAIN=1    also runs those that have passed on this tree
        SECONDS=n  of the soak test and of each fuzzer; 15 and 60 without it
        SAMPLE=n   mutants that `make mutate` tries; SAMPLE=all: every one; 100 without it
        LIMITS=n   multiplies the time limits, those of single tests too, for slow machines

tests/everything.tsv has one line for each target: whether it passed, seconds, the commit ("+": with
uncommitted changes), a hash of the files, the command, and its figure: the line in which the target
sums up. It is written after each target, so that an interrupted run continues where it stopped. The
output of a target is in build/everything/NAME.log.

A target runs in a copy of the files that it needs and of no others, see SETS: it cannot depend on a
file that its hash does not cover, and edits made while it runs do not matter. A line counts only
for the files that it was measured on, and a line of other files is marked. So after a change in a
benchmark, for example, the results of the model checker still count. The file itself and the tables
made from it belong to no set.

Tables in tests/README.md and bench/README.md, between their markers, are made from the file, after
each target and by

    python3 tests/tools/everything.py readme

`python3 tests/tools/everything.py check` compares both, and looks for targets of the Makefile that are
missing here; tests/static/doc.sh calls it.
"""
import collections
import fcntl
import filecmp
import fnmatch
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
STATUS = "tests/everything.tsv"
PAGES = {"tests/README.md": "everything", "bench/README.md": "size"}  # and the table of each
LOGS = "build/everything"
COPIES = "build/copy"
MADE = re.compile(r"(<!-- (everything|size): make everything -->\n)(.*?)(<!-- /\2 -->\n)", re.S)
FIELDS = ("target", "result", "seconds", "commit", "tree", "command", "figure")
HEADER = f"# Written by `make everything`; see tests/tools/everything.py.\n# {' '.join(FIELDS)}\n"
NOW = "# The tables mark what is not of\t"

SUM = r"\d+ passed, \d+ failed"
# The files that a target needs, as shell patterns; ! excludes those that were included so far.
# COMMON leaves out the parts of the Makefile that only targets with all files use.
COMMON = ("volt.h", "Makefile", "*.mk", "!tests/static/compile/check.mk",
          "!tests/adapters/adapters.mk", "!tests/projects/projects.mk", "!examples/packaging/*")
SUITE = (*COMMON, "tests/*", "examples/*", "!tests/model/*", "!tests/sim/*", "!tests/mutate/*",
         "!tests/README.md", "!tests/tools/*", "!tests/adapters/*", "!tests/projects/*",
         "!tests/image/*", "!tests/static/size*", "!examples/programs/*", "!examples/adapters/*",
         "!examples/projects/*", "!examples/packaging/*", "!examples/gdb/*", "!examples/README.md",
         *COMMON)
# without the measurements beside peers, which no program of bench reads
MEASURED = ("!bench/results/results.json", "!bench/results/speed.svg")
COUNTS = ("!tests/model/expected.txt",)  # which only `make model` compares
DEFECTS = ("!tests/model/mutants*",)  # which only `make model-mutants` applies
BENCH = (*COMMON, "bench/*", "tests/lib/*", "!*.md", *MEASURED)
# Only the helpers that they use: these targets take hours, and helpers of tests change often.
MODEL_LIB = ("tests/lib/slab.h", "tests/lib/edits.awk")
SETS = {
    "all": ("*",),
    "suite": SUITE,
    "coverage": (*SUITE, "tests/tools/coverage.*"),
    "model": (*COMMON, "tests/model/*", *MODEL_LIB, *DEFECTS),
    "model-mutants": (*COMMON, "tests/model/*", *MODEL_LIB, *COUNTS),
    "sim": (*COMMON, "tests/sim/*"),
    "fault": (*COMMON, "tests/fault/*", "tests/lib/start_by_fork.h", "examples/*",
              "!examples/gdb/*", "!examples/packaging/*", "bench/*", "!*.md", *MEASURED),
    "fuzz": (*COMMON, "tests/fuzz/*", "tests/lib/*"),
    "mutants": (*SUITE, "tests/model/*", "tests/sim/*", "tests/mutate/*", *COUNTS,
                *DEFECTS),
    "bench": BENCH,
    "rows": (*BENCH, "tests/static/*", "examples/0*"),
    "tls": (*BENCH, "examples/adapters/*"),
    "coherence": (*BENCH, "tests/model/*", "tests/sim/*", *COUNTS, *DEFECTS),
    "image": (*COMMON, "tests/image/*", "examples/*", "!examples/gdb/*", "!examples/packaging/*",
              "!*.md"),
}
SET_OF = (  # the first pattern that fits a target; others need all files
    ("model-mutants", "model-mutants"), ("model*", "model"), ("sim*", "sim"), ("fault*", "fault"),
    ("fuzz", "fuzz"), ("mutate", "mutants"), ("defects", "mutants"), ("coverage", "coverage"),
    ("image", "image"), ("bench-coherence", "coherence"), ("bench-tls", "tls"),
    ("bench-*", "bench"), ("bench", "rows"),
    *((pattern, "suite") for pattern in (
        "test-optimised", "sanitize-*", "valgrind", "msan", "odds", "soak", "cross-*", "kernels",
        "clocks")),
)
CROSS = "aarch64 armhf armel mipsel mips powerpc s390x riscv64 i386 musl".split()
# name: command, time limit in seconds, pattern of the figure's lines (None: the last one). FIRST
# lists those that tests/README.md shows first.
TARGETS = {
    "test": ("make test", 1800, None),
    "test-optimised": ("make test-optimised", 1800, None),
    "check": ("make check FULL=1", 7200, r"^check: "),
    "reject": ("make reject", 1800, r"^reject "),
    "examples": ("make examples", 1800, r"^examples: "),
    "install": (f"make install DESTDIR={LOGS}/root", 60, r"^cp "),
    "demo": ("make demo", 300, r"requests per second|requests/s"),
    "trace": ("make trace", 300, None),
    "harden": ("make harden", 3600, None),
    "adapters": ("make adapters", 7200, r"^adapters: "),
    "packages": ("make packages", 7200, r"^packages: "),
    "doc-check": ("make doc-check", 1800, r"^doc: \d+ passed"),
    "gdb-test": ("make gdb-test", 1800, None),
    "dashboard": ("make dashboard", 600, "dashboard"),
    **{f"sanitize-{s}": (f"make sanitize SANITIZERS={s}", 5400, None)
       for s in ("asan-gcc", "tsan-gcc", "asan-clang", "tsan-clang")},
    "valgrind": ("make valgrind", 3600, None),
    "msan": ("make msan", 1800, None),
    "coverage": ("make coverage", 3600, r"^coverage"),
    "odds": ("make odds", 1800, None),
    "soak": ("make soak SECONDS=15", 300, r"^round|^soak: passed"),
    "model": ("make model", 3600, "model"),
    "model-full": ("make model-full", 14400, "model"),
    "model-self": ("make model-self", 3600, None),
    "model-mutants": ("make model-mutants", 14400, None),
    "fault": ("make fault", 1800, r"^fault: "),
    "fault-full": ("make fault FULL=1", 7200, r"^fault: |^shipped: "),
    "fault-shipped": ("make fault-shipped", 1800, r"^shipped: "),
    "sim": ("make sim", 900, r"^\w+ build: "),
    "sim-full": ("make sim FULL=1", 3600, r"^\w+ build: "),
    "sim-mutants": ("make sim-mutants", 14400, None),
    "fuzz": ("make fuzz SECONDS=60", 1800, r"^fuzz "),
    "defects": ("make defects", 3600, None),
    "mutate": ("make mutate SAMPLE=100", 14400, r"^mutate: \d+ mutants, \d+ killed"),
    **{f"cross-{t}": (f"make cross TARGETS={t}", 7200, None) for t in CROSS},
    "kernels": ("make kernels", 7200, None),
    "clocks": ("make clocks", 3600, None),
    "image": ("make image", 14400, r"^image: "),
    "size": ("make size", 1200, "size"),
    "bench-gate": ("make bench-gate", 1800, None),
    "bench-coherence": ("make bench-coherence", 3600, None),
    "bench-inside": ("make bench-inside", 3600, None),
    "bench-placement": ("make bench-placement", 3600, None),
    "bench-tls": ("make bench-tls", 3600, r"median"),
    "bench": ("make bench", 7200, None),
}
FIRST = ("test", "test-optimised", "check", "coverage", "model", "model-full", "model-mutants", "fault", "fault-full",
         "sim", "sim-mutants", "fuzz", "mutate", "kernels", "clocks")
SIZES = ("all", "plain echo server", "with VOLT_SINGLE_THREAD", "03_echo", "01_hello",
         "with VOLT_SINGLE_THREAD, VOLT_NO_IO")
# Targets of the Makefile that no line above runs, with the reason.
LEFT_OUT = {
    "help": "prints text",
    "clean": "removes build/",
    "everything": "this",
    "dist": "a part of packages",
    "recipes": "a part of packages",
    "doc": "a part of doc-check",
    "sanitize": "runs as its four parts",
    "cross": "runs as its ten parts",
    "model-shipped": "a part of model-full",
    "bench-peers": "takes hours and the tools of other languages, and writes bench/README.md",
}
# Variables that narrow a target, or are meant for this script: the targets must not inherit them.
NOT_INHERITED = (
    "MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL GNUMAKEFLAGS ONLY SHOW AGAIN SECONDS SAMPLE "
    "LIMITS SEED SEEDS FULL ONE ROW ROWS TARGETS IMAGES CROSS_QUICK SANITIZERS SIZES MUTANT "
    "REPLAY MODEL_FLAGS RECHECK LIST FROM TASKS OFF CALM PROGRAM TRACE SCENARIO PAIRS RESUME "
    "WORKERS PARTS DESTDIR UPSTREAM MAINTAINER"
).split()


# ---- files, commit

def git(*arguments):
    return subprocess.run(("git", *arguments), capture_output=True, check=True).stdout


def without_tables(text):
    return MADE.sub(r"\1\4", text)


def set_of(target):
    return next((name for pattern, name in SET_OF if fnmatch.fnmatch(target, pattern)), "all")


def is_in_set(path, name):
    is_in = False
    for pattern in SETS[name]:
        if fnmatch.fnmatch(path, pattern.removeprefix("!")):
            is_in = pattern[0] != "!"
    return is_in


def paths_now():
    """All files that git knows or would know, sorted."""
    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    return [path for path in sorted({os.fsdecode(name) for name in names}) if os.path.isfile(path)]


def files_now():
    """These files, with a hash of the mode and content of each."""
    found = {}
    for path in paths_now():
        with open(path, "rb") as f:
            data = f.read()
        if path in PAGES:
            data = without_tables(data.decode()).encode()
        mode = b"x" if os.access(path, os.X_OK) else b"-"
        found[path] = mode + hashlib.sha256(data).digest()
    return found


def trees_now():
    """For each set a hash of its files, except of those that this script writes."""
    files = files_now()
    files.pop(STATUS, None)
    trees = {}
    for name in SETS:
        sums = hashlib.sha256()
        for path in files:
            if is_in_set(path, name):
                sums.update(os.fsencode(path) + b"\0" + files[path])
        trees[name] = sums.hexdigest()[:12]
    return trees


def copy_of(name):
    """Brings the copy of a set up to date and returns its path. Only what differs is written, so
    that `make` in the copy builds only what has to be built."""
    root = f"{COPIES}/{name}"
    wanted = {path for path in paths_now() if is_in_set(path, name)}
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        if inside == ".":
            folders[:] = [n for n in folders if n != "build"]
        for path in (os.path.normpath(os.path.join(inside, n)) for n in names):
            if path not in wanted:
                os.remove(os.path.join(root, path))
    for path in wanted:
        to = os.path.join(root, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not (os.path.isfile(to) and filecmp.cmp(path, to, shallow=False)):
            shutil.copy(path, to)
        shutil.copymode(path, to)
    return root


def commit_now():
    """The current commit; with a + if the files differ from it."""
    commit = git("rev-parse", "--short=7", "HEAD").decode().strip()
    changed = git("status", "--porcelain", "-z", "--untracked-files=all").decode().split("\0")
    paths = {entry[3:] for entry in changed if entry} - {STATUS}
    for page in paths & set(PAGES):
        old = git("show", "HEAD:" + page).decode()
        if without_tables(old) == without_tables(read(page)):
            paths.remove(page)
    return commit + ("+" if paths else "")


# ---- the file

def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


class Status:
    """The lines of the file, by target; and the state that the tables were last compared with."""

    def __init__(self):
        self.lines, self.commit, self.trees = {}, "", {}
        for text in read(STATUS).splitlines() if os.path.exists(STATUS) else ():
            if text.startswith(NOW):
                self.commit, *trees = text[len(NOW):].split("\t")
                self.trees = dict(tree.split("=") for tree in trees)
            elif not text.startswith("#"):
                fields = text.split("\t")
                if len(fields) != len(FIELDS):
                    sys.exit(f"everything: {STATUS}: not {len(FIELDS)} fields: {text}")
                self.lines[fields[0]] = dict(zip(FIELDS, fields))

    def text(self):
        lines = ["\t".join(self.lines[t][f] for f in FIELDS) + "\n" for t in sorted(self.lines)]
        trees = [f"{name}={self.trees[name]}" for name in sorted(self.trees)]
        return HEADER + NOW + "\t".join((self.commit, *trees)) + "\n" + "".join(lines)

    def save(self):
        write(STATUS, self.text())

    def is_current(self, target, trees):
        return target in self.lines and self.lines[target]["tree"] == trees[set_of(target)]


# ---- running

def commands(environ, trees):
    """Each target's command, with the switches; and the names whose command a switch has set."""
    found, is_set = {name: row[0] for name, row in TARGETS.items()}, set()
    if environ.get("SECONDS"):
        for name in ("soak", "fuzz"):
            found[name] = re.sub(r"SECONDS=\d+", f"SECONDS={int(environ['SECONDS'])}", found[name])
            is_set.add(name)
    if environ.get("SAMPLE") == "all":
        found["mutate"] = "make mutate"
    elif environ.get("SAMPLE"):
        found["mutate"] = f"make mutate SAMPLE={int(environ['SAMPLE'])}"
    if environ.get("SAMPLE"):
        is_set.add("mutate")
    if "SAMPLE" in found["mutate"]:  # another sample for other files, the same for the same ones
        found["mutate"] += f" SEED={int(trees[set_of('mutate')], 16) % 10000}"
    if environ.get("CC"):
        found = {name: f"{command} CC='{environ['CC']}'" for name, command in found.items()}
    return found, is_set


def limit_of(name, command, factor):
    seconds = re.search(r"SECONDS=(\d+)", command)
    limit = TARGETS[name][1] + (2 * int(seconds[1]) if seconds else 0)
    return (limit if command != "make mutate" else 100 * 3600) * factor


def model_figure(lines):
    """The scenarios and their claims are in lines of their own."""
    n, n_here = collections.Counter(), collections.Counter()
    for line in lines:
        scenario = re.match(r"ok +\w+ +(EXHAUSTIVE|BOUNDED|SAMPLED)(\(?)", line)
        if scenario:
            n_here[scenario[1] == "EXHAUSTIVE" and not scenario[2]] += 1
        elif re.match(r"model_\w+: " + SUM, line):
            n += n_here if not line.startswith("model_litmus:") else {}
            n_here.clear()
    sums = [line for line in lines if re.match(r"model(-\w+)?: " + SUM, line)]
    return [f"{n[True]} of {sum(n.values())} scenarios without bounds", *sums]


def size_figure(lines):
    """A row of the printed tables becomes "processor: all, 03_echo ...", or "macros: all without
    these parts, for each processor"; see size_table."""
    rows = [line.strip("|").split("|") for line in lines if line[0] == "|"]
    rows = [[cell.strip() for cell in row] for row in rows]
    return [f"{row[0]}: {', '.join(row[1:])}" for row in rows if row[1][:1].isdigit()]


def dashboard_figure(lines):
    return [f"{sum(line.startswith('dashboard: ') for line in lines)} checks passed"]


FIGURES = {"model": model_figure, "size": size_figure, "dashboard": dashboard_figure}


def figure_of(name, log):
    """As one line of the file, without characters that break a table in Markdown."""
    with open(log, errors="replace", encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip() and not re.match(r"make(\[|:)", line)]
    pattern = TARGETS[name][2]
    if pattern in FIGURES:
        found = FIGURES[pattern](lines)
    elif pattern:
        found = [line for line in lines if re.search(pattern, line)]
        if pattern.startswith("^round"):
            found = found[-2:]
    else:
        found = lines[-1:]
    text = "; ".join(re.sub(r"\s+", " ", line) for line in found)
    most = 2000 if name == "size" else 600
    return textwrap.shorten(text.replace("|", "/"), most, placeholder=" ...") or "no figure"


def end_group(process):
    """Ends all processes of the command, which has a process group of its own."""
    for sig, wait in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            return
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            pass


def run(name, command, limit, factor):
    """Returns (result, seconds, figure)."""
    log = f"{LOGS}/{name}.log"
    environ = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    environ["GIT_DIR"] = os.path.abspath(".git")  # for programs that note the commit
    if factor > 1:  # targets that need a factor of their own set it
        environ["TEST_TIMEOUT_FACTOR"] = str(round(factor))
    start = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=copy_of(set_of(name)), stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, env=environ, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(process)
    seconds = time.monotonic() - start
    if status is None:
        return "late", seconds, f"stopped after {limit:.0f} s"
    return "fail" if status else "pass", seconds, figure_of(name, log)


def complaints(name):
    """Lines of a log that report failures."""
    with open(f"{LOGS}/{name}.log", errors="replace", encoding="utf-8") as f:
        lines = [line.rstrip() for line in f]
    found = [line for line in lines
             if re.search(r"\b[Ff]ail|FAIL|error:|did not end|not found|\*\*\*|SURVIVED", line)
             and not re.search(r"\b0 fail", line)]
    return (found or lines)[-20:]


def chosen(only):
    names = []
    for pattern in only.split() if only else ("*",):
        found = fnmatch.filter(TARGETS, pattern)
        if not found:
            sys.exit(f"everything: no target {pattern}; there are: {' '.join(TARGETS)}")
        names += [name for name in found if name not in names]
    return names


def is_done(status, name, command, is_set, trees):
    if not status.is_current(name, trees) or status.lines[name]["result"] != "pass":
        return False
    return status.lines[name]["command"] == command or name not in is_set


def run_all():
    os.makedirs(LOGS, exist_ok=True)
    lock = open(f"{LOGS}/lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"everything: another run is at work in {LOGS}")
    status, trees = Status(), trees_now()
    by_name, is_set = commands(os.environ, trees)
    factor = float(os.environ.get("LIMITS") or 1)
    names = chosen(os.environ.get("ONLY"))
    for name in names:
        command = by_name[name]
        if not os.environ.get("AGAIN") and is_done(status, name, command, is_set, trees):
            print(f"done  {name}: {status.lines[name]['figure']}", flush=True)
            continue
        print(f"run   {name}: {command}", flush=True)
        commit, trees = commit_now(), trees_now()
        result, seconds, figure = run(name, command, limit_of(name, command, factor), factor)
        status.lines[name] = dict(zip(FIELDS, (
            name, result, f"{seconds:.0f}", commit, trees[set_of(name)], command, figure)))
        write_tables(status)  # `make check` compares them with the file
        print(f"{result}  {name}: {figure}, {seconds:.0f} s", flush=True)
        if result != "pass":
            print("".join(f"        | {line[:160]}\n" for line in complaints(name)), end="")
    write_readme()
    trees = trees_now()
    bad = [n for n in names if not status.is_current(n, trees)
           or status.lines[n]["result"] != "pass"]
    print(f"everything: {len(names) - len(bad)} passed, {len(bad)} failed"
          + (": " + " ".join(bad) if bad else ""))
    return 1 if bad else 0


# ---- showing

def mark(status, name, trees, commit):
    """The reason why a line is not of these files, or "". `commit` alone is enough for a reader."""
    line = status.lines.get(name)
    if not line:
        return "not run"
    if line["tree"] == trees.get(set_of(name)):
        return ""
    return "of another commit" if line["commit"] != commit else "of other files"


def show():
    status, trees, commit = Status(), trees_now(), commit_now()
    is_whole = True
    print(f"everything: at {commit}")
    for name in chosen(os.environ.get("ONLY")):
        why, line = mark(status, name, trees, commit), status.lines.get(name)
        is_whole = is_whole and not why and line["result"] == "pass"
        if line:
            why = f"{line['commit']}, {why.upper()}" if why else line["commit"]
            print(f"{line['result']}  {name}: {line['figure']}, {line['seconds']} s, {why}")
        else:
            print(f"-     {name}: NOT RUN")
    return 0 if is_whole else 1


def row_of(status, name):
    line = status.lines.get(name)
    if not line:
        return f"| `{TARGETS[name][0]}` | **not run** | | |\n"
    why = mark(status, name, status.trees, status.commit)
    figure = line["figure"] if line["result"] == "pass" else f"**failed**: {line['figure']}"
    commit = line["commit"] + (f", **{why}**" if why else "")
    return f"| `{line['command']}` | {figure} | {line['seconds']} | {commit} |\n"


def table(status, names):
    head = "| command | says | seconds | commit |\n|---|---|---|---|\n"
    return head + "".join(row_of(status, name) for name in names)


def made(status):
    """All targets with their results."""
    lines = {name: status.lines[name] for name in TARGETS if name in status.lines}
    n_passed = sum(line["result"] == "pass" and not mark(status, name, status.trees, "")
                   for name, line in lines.items())
    text = (f"Of {len(TARGETS)} targets {n_passed} passed on the files of commit"
            f" {status.commit or 'none'}; {len(TARGETS) - len(lines)} were not run. A target may have"
            " run on an earlier commit whose files that it needs are the same. A line of other files"
            " says so.")
    rest = [name for name in TARGETS if name not in FIRST]
    return ("\n".join(textwrap.wrap(text, 100)) + "\n\n" + table(status, FIRST)
            + "\n<details><summary>All other targets</summary>\n\n" + table(status, rest)
            + "\n</details>\n")


def size_table(status):
    line = status.lines.get("size")
    if not line or line["result"] != "pass":
        return "`make size` was not run, or failed.\n"
    why = mark(status, "size", status.trees, status.commit)
    text = f"At commit {line['commit']}" + (f", **{why}**" if why else "") + ":\n\n"
    rows = [row.split(": ") for row in line["figure"].split("; ")]
    whole = [row for row in rows if not row[0].startswith("VOLT_")]
    parts = [row for row in rows if row[0].startswith("VOLT_")]
    text += size_rows("text + data, bytes", SIZES, whole)
    if parts:
        text += "\n" + size_rows("all, without", [row[0] for row in whole], parts)
    return text


def size_rows(what, heads, rows):
    text = f"| {what} | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|\n"
    return text + "".join(f"| {name} | {cells.replace(', ', ' | ')} |\n" for name, cells in rows)


def made_anew(page, status):
    """The page with its table as the file gives it."""
    tables = {"everything": made, "size": size_table}
    text = read(page)
    if [m[2] for m in MADE.finditer(text)] != [PAGES[page]]:
        sys.exit(f"everything: {page} needs the markers of its table, once")
    return MADE.sub(lambda m: m[1] + tables[m[2]](status) + m[4], text)


def write_tables(status):
    """Marks the tables as of now, and notes in the file the state that they were compared with."""
    status.commit, status.trees = commit_now(), trees_now()
    status.save()
    for page in PAGES:
        write(page, made_anew(page, status))


def write_readme():
    write_tables(Status())
    return 0


# ---- checking

def makefiles():
    """The Makefile and the files that it includes, in the order in which make reads them."""
    main = read("Makefile").replace("\\\n", " ")
    return "Makefile", *re.search(r"^FRAGMENTS := (.*)$", main, re.M)[1].split()


def phony():
    """The .PHONY targets."""
    text = "".join(map(read, makefiles())).replace("\\\n", " ")
    return {name for line in re.findall(r"^\.PHONY:(.*)", text, re.M) for name in line.split()}


def lost_additions():
    """Assignments that drop what a file of the Makefile read before has added to the variable."""
    added = {}
    for file in makefiles():
        for i, line in enumerate(read(file).splitlines(), 1):
            if m := re.match(r"(\w+)\s*(\+|:|\?)?=", line):
                if m[2] == "+":
                    added.setdefault(m[1], file)
                elif m[2] != "?" and m[1] in added:
                    yield f"{file}:{i}: {m[1]} loses what {added[m[1]]} has added"


def check():
    """Needs no git: the tables and the file must agree, on any commit."""
    bad = []
    status = Status()
    if not os.path.exists(STATUS) or read(STATUS) != status.text():
        bad.append(f"{STATUS} is not sorted, or not as this script writes it")
    bad += [f"{STATUS}: there is no target {name}" for name in status.lines if name not in TARGETS]
    bad += [f"{page} is not what {STATUS} gives: python3 tests/tools/everything.py readme"
            for page in PAGES if made_anew(page, status) != read(page)]
    run_by = {word for row in TARGETS.values() for word in row[0].split()[1:2]}
    for name in sorted(phony() - run_by - set(LEFT_OUT)):
        bad.append(f"Makefile: `make everything` neither runs {name} nor says why not")
    for name in sorted((run_by | set(LEFT_OUT)) - phony()):
        bad.append(f"tests/tools/everything.py: the Makefile has no .PHONY target {name}")
    bad += lost_additions()
    print("".join(f"everything: {what}\n" for what in bad), end="")
    return 1 if bad else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    actions = {"run": show if os.environ.get("SHOW") else run_all, "check": check,
               "readme": write_readme}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    # so that running commands are ended, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(actions[sys.argv[1]]())
    except KeyboardInterrupt:
        sys.exit("everything: stopped; the next run goes on from here")
