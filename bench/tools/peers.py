#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""The rows of the benchmarks by volt.h, by other runtimes and by the floors, in the same rounds.

    bench/tools/peers.py [ROW...]           measures: all rows, or these, whose results are replaced
        --workers '1 2'                     4: only S2, S3 and S10, on two CPUs
        --pairs 21                          rounds; of rows that take long 7
        --resume                            goes on with the last run, where that was ended
        --elsewhere                         adds to the results of another machine: rows are marked
        --remark TEXT                       is kept with the run, and published
    bench/tools/peers.py --net [ROW...]     measures the servers by bench/tools/net_ratio.sh
    bench/tools/peers.py --net-file FILE    takes the lines that this wrote with BENCH_JSON=1
    bench/tools/peers.py --readme           writes bench/README.md's section and speed.svg
    bench/tools/peers.py --readme --check   1 if that would change them

Each round runs every program once, in a process of its own, and the order rotates, so that a drift
of the machine affects all. One thread runs on the first CPU, more on the first two; a worker is a
thread, and so is the one outside where a row has one. A ratio is the peer's time over volt's in the
same round: over 1 volt is faster. Printed are the median of all rounds and its interval at 95 %, by
the order of the ratios. First the variants of each peer run a few rounds among themselves, and only
the best continue; the best of them counts. A round during which other processes took more than 0.3
CPUs is repeated, twice at most, then kept, and counted as disturbed."""
import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

sys.dont_write_bytecode = True  # nothing but sources in bench/
import results_file
import speed

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SVG = "bench/results/speed.svg"

# ---- rows and programs

VOLT = "sched outside timer wake sync chan files process".split()
FLOORS = ("floor", "floor_outside")
ONE, ANY = 1, 64  # workers at most

# peer, directory in bench/peers and build/peers, programs in it, and the variants of each: name,
# suffix of the program, options, workers at most. Missing programs are left out.
PEERS = (
    ("tokio", "tokio", "sched outside timer wake sync files process".split(),
     (("", "", (), ANY), ("mimalloc", "-mimalloc", (), ANY), ("alt", "-alt", (), ANY),
      ("ct", "", ("--flavor", "ct"), ONE), ("ct, mimalloc", "-mimalloc", ("--flavor", "ct"), ONE))),
    ("go", "go", "sched outside timer wake sync chan files process".split(),
     (("", "", (), ANY), ("gc off", "", ("--gc", "off"), ANY))),
    ("asio", "cpp", "asio_sched asio_outside asio_timer".split(), (("", "", (), ANY),)),
    ("tbb", "cpp", ["tbb_sched"], (("", "", (), ANY),)),
    ("libuv", "libuv", "timer wake outside files process".split(), (("", "", (), ONE),)),
    ("pth", "pth", ["sched"], (("", "", (), ONE),)),
    ("zig", "zig", "sync chan".split(), (("", "", (), ONE),)),
)

# A row NAME:TAG is NAME by another library, which is then a peer itself, or in another form.
LIBRARIES = {"kanal", "flume", "async-channel", "crossfire"}
ANOTHER = {"goroutine"}  # tags of different operations: no thread wakes there
ENDINGS = {"asio": ("co", "coroutines"), "tbb": ("j", "joined")}  # of rows, in place of a tag
UNTAGGED = {("tokio", "C7"): "async-channel"}  # rows for which the peer has no means of its own

ALONE = re.compile(r"C(1[a-z]|2|3[ab]|4|5|6)|T(1|3|5)|F")  # tasks that do not meet: one worker
CROWDED = {"S2", "S3", "S10"}  # the rows for 4 workers
BY_CPU = {"T3a", "T5a", "F1", "F2"}  # deadlines fix the wall time; the target is of CPU time

RUN_SECONDS = 0.12  # target duration of a run
LONG_SECONDS = 5.0  # rows in which volt takes longer have LONG_PAIRS rounds
LONG_PAIRS = 7
SLOW = 3            # times volt's figure: a slower peer is left out, if a run takes LONG_SECONDS
RUN_LIMIT = 120.0
QUALIFYING = 3      # rounds
WITHIN = 1.15       # of the peer's best variant
CALM = 0.3          # CPUs that other processes may take
REPEATS = 2


class Failed(Exception):
    """A program gave no figures; the text says why."""


@dataclass
class Program:
    peer: str
    variant: str
    path: str
    options: tuple = ()
    most: int = ANY


@dataclass
class Figures:
    wall: float
    cpu: float
    wakes: float | None  # per operation, as the next one; None: not counted
    calls: float | None
    what: str
    ops: int
    seconds: float     # of the whole process, as the next two
    cpu_seconds: float
    switches: int      # involuntary ones


@dataclass
class Candidate:
    """A program that does the row, and its runs."""
    program: Program
    row: str
    workers: int
    peer: str
    variant: str
    reps: int = 1
    runs: list = field(default_factory=list)

    def name(self):
        return self.peer + (f" ({self.variant})" if self.variant else "")

    def median(self, what):
        values = [getattr(r, what) for r in self.runs]
        return None if None in values else statistics.median(values)


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- programs and their rows

def build_volt():
    names = [n for n in (*VOLT, *FLOORS) if os.path.exists(f"bench/rows/{n}.c")]
    subprocess.run(["make", "-s", *(f"build/bench/{n}" for n in names)], check=True)
    return [Program("volt", "", f"build/bench/{n}") for n in VOLT if n in names]


def build_peer(directory):
    """The reason why it cannot be built, or None."""
    script = f"bench/peers/{directory}/build.sh"
    if not os.path.exists(script):
        return f"there is no {script}"
    done = subprocess.run([script, f"build/peers/{directory}"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return None if done.returncode == 0 else done.stdout.strip() or "its build failed"


def build_peers():
    programs, missing = [], {}
    for directory in dict.fromkeys(p[1] for p in PEERS):
        why = build_peer(directory)
        if why:
            missing[directory] = why
            say(f"{directory} is left out: {why}")
    for peer, directory, names, variants in PEERS:
        for name, (variant, suffix, options, most) in itertools.product(names, variants):
            path = f"build/peers/{directory}/{name}{suffix}"
            if directory not in missing and os.path.isfile(path):
                programs.append(Program(peer, variant, path, options, most))
    return programs


def rows_of(program, known={}):
    if program.path not in known:
        done = subprocess.run([program.path, "--list"], capture_output=True, text=True, timeout=30)
        known[program.path] = done.stdout.split() if done.returncode == 0 else []
    return known[program.path]


def split_row(peer, row, known):
    """Name and tag."""
    base, _, tag = row.partition(":")
    ending, what = ENDINGS.get(peer, ("", ""))
    if ending and base.endswith(ending) and base not in known:
        return base.removesuffix(ending), what
    return base, tag


def candidate(program, row, tag, workers):
    peer = UNTAGGED.get((program.peer, row[:2]), program.peer)
    parts = [program.variant]
    if tag in LIBRARIES:
        peer = tag
    else:
        parts.insert(0, tag)
    return Candidate(program, row, workers, peer, ", ".join(filter(None, parts)))


def candidates_of(row, workers, programs):
    split = ((p, r, *split_row(p.peer, r, (row,))) for p in programs if workers <= p.most
             for r in rows_of(p))
    return [candidate(p, r, tag, workers) for p, r, base, tag in split
            if base == row and tag not in ANOTHER and (p.peer != "volt" or not tag)]


def floors_of(row, workers):
    """Those of the same name, without and with the operations that other threads make necessary."""
    if workers != 1:
        return []
    names = (row, f"{row}+rmw", f"{row}+clock")
    paths = [f"build/bench/{f}" for f in FLOORS if os.path.exists(f"build/bench/{f}")]
    floors = [Candidate(Program("floor", "", path), name, 1, "floor", name.removeprefix(row))
              for path in paths for name in names]
    return [f for f in floors if calibrate(f, quiet=True)]


def workers_of(row, asked):
    return [w for w in asked
            if w == 1 or (not ALONE.match(row) and (w <= 2 or row in CROWDED))]


# ---- one run

def pinned(c):
    """One CPU for one worker, and one for an outside thread of the row: two threads on one CPU
    would measure the kernel's time slices. Two for more."""
    threads = c.workers + ("outside" in c.program.path)
    cpus = sorted(os.sched_getaffinity(0))[:1 if threads == 1 else 2]
    return ["taskset", "-c", ",".join(map(str, cpus))]


def command_of(c):
    reps = ["--reps", str(c.reps)]
    # A floor has one worker, and no option for it.
    workers = [] if c.peer == "floor" else ["--workers", str(c.workers)]
    return [*pinned(c), c.program.path, c.row, *workers, *reps, *c.program.options]


def process(command):
    """Its output, status, seconds, and resource usage."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "BENCH_JSON": "1"})
    limit = threading.Timer(RUN_LIMIT, child.kill)
    limit.start()
    try:
        output = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    finally:
        limit.cancel()
        child.stdout.close()
        if child.returncode is None:
            child.kill()
            child.wait()
    return output, child.returncode, time.monotonic() - start, used


def figures_in(output, row):
    """The row's line of JSON, and the text after the operations in the line before it."""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("{"):
            found = json.loads(line)
            if found.get("row") == row:
                return found, lines[i - 1].partition(f" {found['ops']}  ")[2].strip()
    raise Failed("no figures for " + row)


def run(c):
    output, status, seconds, used = process(command_of(c))
    if status != 0:
        last = output.strip().splitlines()[-1:] or [f"status {status}"]
        raise Failed(last[0])
    found, what = figures_in(output, c.row)
    return Figures(found["wall_median_ns"], found["cpu_median_ns"], found.get("wakes_per_op"),
                   found.get("calls_per_op"), what, found["ops"], seconds,
                   used.ru_utime + used.ru_stime, used.ru_nivcsw)


def calibrate(c, quiet=False):
    """Sets the repetitions; 0 if the program cannot do the row, else the seconds of one of them."""
    try:
        c.runs = [run(c)]
        each = c.runs[0].seconds / 2  # the first repetition is not measured
    except (Failed, ValueError, KeyError) as error:
        if not quiet:
            say(f"{c.row}: {c.name()}: {error}")
        return 0
    c.reps = max(1, min(99, int(RUN_SECONDS / each) - 1))
    return each


# ---- rounds

def idle_and_steal():
    """Seconds that all CPUs were idle, and that were taken by others, such as virtual machines. Not
    the time used: the kernel samples that, which is wrong for work that runs at its ticks."""
    with open("/proc/stat", encoding="ascii") as f:
        _, _, _, idle, iowait, _, _, steal = map(int, f.readline().split()[1:9])
    hz = os.sysconf("SC_CLK_TCK")
    return (idle + iowait) / hz, steal / hz


@dataclass
class Load:
    """The load of other processes during the rounds of a row."""
    cpus: list = field(default_factory=list)
    average: list = field(default_factory=list)
    steal: float = 0
    switches: int = 0
    disturbed: int = 0

    def summary(self):
        return {"other_cpus_median": round(statistics.median(self.cpus), 3),
                "other_cpus_most": round(max(self.cpus), 3),
                "loadavg_most": max(self.average), "steal_seconds": round(self.steal, 3),
                "involuntary_switches": self.switches, "disturbed_rounds": self.disturbed}


def one_round(candidates, shift, load):
    """Figures of all, and the number of CPUs that others took meanwhile."""
    load.average.append(os.getloadavg()[0])
    idle, steal = idle_and_steal()
    start, own = time.monotonic(), time.process_time()
    shift %= len(candidates)
    figures = {}
    for c in candidates[shift:] + candidates[:shift]:
        figures[id(c)] = run(c)
    ours = time.process_time() - own + sum(f.cpu_seconds for f in figures.values())
    idle_after, steal_after = idle_and_steal()
    seconds = time.monotonic() - start
    load.steal += steal_after - steal
    load.switches += sum(f.switches for f in figures.values())
    return figures, max(0.0, os.cpu_count() - (idle_after - idle + ours) / seconds)


def calm_round(candidates, shift, load):
    for attempt in range(REPEATS + 1):
        figures, others = one_round(candidates, shift, load)
        if others <= CALM:
            break
    load.cpus.append(others)
    load.disturbed += others > CALM
    for c in candidates:
        c.runs.append(figures[id(c)])


def left_out(c):
    return {"peer": c.peer, "variant": c.variant, "wall_ns": c.median("wall"),
            "cpu_ns": c.median("cpu"), "rounds": len(c.runs)}


def qualify(candidates, measure, rounds):
    """The best variants of each peer, and those left out. Without rounds: by past runs."""
    by_peer = {}
    for c in candidates:
        by_peer.setdefault(c.peer, []).append(c)
    rivals = [c for group in by_peer.values() if len(group) > 1 for c in group]
    for c in rivals if rounds else ():
        c.runs.clear()
    for i in range(rounds if rivals else 0):
        calm_round(rivals, i, Load(average=[0]))
    kept, left = [], []
    for group in by_peer.values():
        best = min(c.median(measure) for c in group)
        for c in group:
            (kept if c.median(measure) <= max(best, WITHIN * best) else left).append(c)
    return kept, [left_out(c) for c in left]


# ---- a row

def ratio_of(peer, volt, measure):
    pairs = [(getattr(p, measure), getattr(v, measure)) for p, v in zip(peer.runs, volt.runs)]
    if any(p <= 0 or v <= 0 for p, v in pairs):
        return None
    return [round(x, 4) for x in speed.interval([p / v for p, v in pairs])]


def entry_of(c):
    entry = {"peer": c.peer, "variant": c.variant, "program": c.program.path, "row": c.row,
             "what": c.runs[0].what, "repetitions": c.reps, "wall_ns": round(c.median("wall"), 3),
             "cpu_ns": round(c.median("cpu"), 3)}
    counts = {f"{what}_per_op": c.median(what) for what in ("wakes", "calls")}
    return entry | {k: round(v, 6) for k, v in counts.items() if v is not None}


def compared(c, volt):
    return entry_of(c) | {f"{m}_ratio": ratio_of(c, volt, m) for m in ("wall", "cpu")}


def floor_entry(c, volt):
    return {"row": c.row, "wall_ns": round(c.median("wall"), 3),
            "wall_ratio": ratio_of(volt, c, "wall"), "cpu_ratio": ratio_of(volt, c, "cpu")}


def result_of(row, volt, peers, floors, left, load):
    measure = "cpu" if row in BY_CPU else "wall"
    result = {"row": row, "what": volt.runs[0].what, "workers": volt.workers,
              "pairs": len(volt.runs), "by": measure, "ops": volt.runs[0].ops,
              "load": load.summary(), "volt": entry_of(volt),
              "peers": [compared(c, volt) for c in peers],
              "floors": [floor_entry(c, volt) for c in floors], "left_out": left}
    return speed.judged(result)


def is_slow(figures, volt):
    return figures.seconds > LONG_SECONDS and figures.wall > SLOW * volt.wall


def measure_row(row, workers, programs, pairs):
    found = [(c, calibrate(c)) for c in candidates_of(row, workers, programs)]
    volt = next((c for c, each in found if c.peer == "volt" and each), None)
    if volt is None:
        return None
    long = volt.runs[0].seconds > LONG_SECONDS
    rivals = [c for c, each in found if c.peer != "volt" and each]
    slow = [c for c in rivals if not long and is_slow(c.runs[0], volt.runs[0])]
    peers, left = qualify([c for c in rivals if c not in slow],
                          "cpu" if row in BY_CPU else "wall", 0 if long else QUALIFYING)
    left += [left_out(c) for c in slow]
    floors = floors_of(row, workers)
    for c in (volt, *peers, *floors):
        c.runs.clear()
    load = Load()
    for i in range(min(pairs, LONG_PAIRS) if long else pairs):
        calm_round([volt, *peers, *floors], i, load)
    return result_of(row, volt, peers, floors, left, load)


# ---- commands

def plan(asked, workers, programs):
    """(row, workers) in the order of volt's programs."""
    rows = [r for p in programs if p.peer == "volt" for r in rows_of(p) if ":" not in r]
    unknown = [r for r in asked if r not in rows]
    if unknown:
        sys.exit(f"no such row: {' '.join(unknown)}; there are: {' '.join(rows)}")
    return [(r, w) for r in rows if not asked or r in asked for w in workers_of(r, workers)]


def remaining(start, done, left):
    return f"{left} left, about {(time.monotonic() - start) / done * left / 60:.0f} min"


def measure(args):
    results = results_file.load()
    programs = build_volt() + build_peers()
    todo = plan(args.rows, args.workers, programs)
    if args.resume and results["runs"]:
        name = max(results["runs"])
        had = {(r["row"], r["workers"]) for r in results["rows"] if r["run"] == name}
        todo = [t for t in todo if t not in had]
    else:
        directories = dict.fromkeys(p.path.split("/")[2] for p in programs)
        name = results_file.begin(results, directories, args.elsewhere, args.remark)
    start, failed = time.monotonic(), []
    for i, (row, workers) in enumerate(todo, 1):
        try:
            result = measure_row(row, workers, programs, args.pairs)
        except Failed as error:
            say(f"{row}: {error}")
            result = None
        if result:
            results_file.put(results, result, name)
        else:
            failed.append(f"{row}/{workers}")
        say(f"{speed.line(result) if result else row + ': no figures'}; "
            f"{remaining(start, i, len(todo) - i)}")
    if failed:
        sys.exit(f"no figures for {' '.join(failed)}")


BARE = "raw"  # the server that is a bare epoll loop: a floor
NET_ROWS = {
    "N1": "64 bytes there and back, 1 connection", "N1s": "the same, all on one CPU",
    "N2a": "512 bytes there and back, 100 connections", "N2b": "the same, 1000 connections",
    "N2c": "N2b, no buffers of connections",
    "N3": "4 connections, 32 messages under way on each", "N4": "N2a with both CPUs for the server",
    "N5a": "HTTP/1.1, 50 connections", "N5b": "the same, 16 requests under way on each",
    "N5c": "Redis' PING, 50 connections", "N5d": "the same, 16 under way on each",
    "N5cs": "Redis' SET and GET, 50 connections", "N5ds": "the same, 16 under way on each",
    "N6": "connect, 64 bytes there and back, close", "N7u": "datagrams of 64 bytes, 1 under way",
    "N7w": "the same, 16 under way", "N7v": "the same, 64 under way, many for each system call",
    "N7s": "datagrams of 1200 bytes sent, 32 at a time, joined",
    "N7r": "such datagrams received", "N8": "10,000 idle connections, bytes for each",
    "N9a": "relay: streams on 4 connections, MiB",
    "N9b": "relay: 512 bytes there and back, 50 connections",
}
# Of these the CPU time counts: it is their subject, and the other side may limit the wall time.
NET_BY_CPU = {"N2c", "N7w", "N7v", "N7s", "N7r", "N9a", "N9b"}


def take_ratios(found):
    """Those of memory, where there are any: how fast connections are made is no subject then."""
    measures = ("wall", "cpu", "bytes")
    for m in measures:
        ratio = [found.pop(f"{m}_{k}", None) for k in ("ratio", "low", "high")]
        if m != "bytes" or ratio[0] is not None:
            found[f"{m}_ratio"] = None if None in ratio else ratio
    if "bytes_ratio" in found:
        found |= {"wall_ratio": None, "cpu_ratio": None}


def floor_of_server(found):
    """The other way round: volt's time over that of the bare loop."""
    ratios = {m: found.get(m) for m in ("wall_ratio", "cpu_ratio", "bytes_ratio") if found.get(m)}
    inverse = {m: [round(1 / x, 4) for x in (r[0], r[2], r[1])] for m, r in ratios.items()
               if min(r) > 0}
    return {"row": BARE} | inverse


def take_server(row, found):
    """A line into its row."""
    if found["peer"] == "tokio1":  # its scheduler of one thread
        found |= {"peer": "tokio", "variant": "ct"}
    if found["peer"] == "volt":
        row["volt"] = {k: v for k, v in found.items() if v is not None}
        if "bytes" in found:
            row["by"] = "bytes"
        return
    row["pairs"] = found.pop("pairs")
    take_ratios(found)
    if found["peer"] != BARE:
        row["peers"].append({"variant": ""} | found)
    elif found["wall_ratio"] or found.get("bytes_ratio"):
        row["floors"].append(floor_of_server(found))


def take_net(lines, results, name):
    """Lines of net_ratio.sh, as soon as each is printed: volt's and its peers', by rows."""
    rows = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        found = json.loads(line)
        name_of_row = found.pop("row")
        key = (name_of_row, found.pop("workers", 2 if name_of_row == "N4" else 1))
        what = NET_ROWS.get(key[0], "")
        by = "cpu" if key[0] in NET_BY_CPU else "wall"
        row = rows.setdefault(key, {"row": key[0], "what": what, "workers": key[1], "by": by,
                                    "peers": [], "floors": []})
        take_server(row, found)
        if "volt" in row and row["peers"]:
            results_file.put(results, speed.judged(dict(row)), name)
    say(f"{len(rows)} rows taken in")


def measure_net(args):
    results = results_file.load()
    name = results_file.begin(results, (), args.elsewhere, args.remark)
    if args.net_file:
        with open(args.net_file, encoding="utf-8") as f:
            take_net(f, results, name)
        return
    with subprocess.Popen(["bench/tools/net_ratio.sh", *args.rows], stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "BENCH_JSON": "1"}) as script:
        take_net(script.stdout, results, name)
    if script.returncode:
        sys.exit(f"bench/tools/net_ratio.sh: status {script.returncode}")


def workers_list(text):
    workers = sorted({int(w) for w in text.split()})
    if not workers or not all(1 <= w <= 64 for w in workers):
        raise ValueError
    return workers


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--workers", type=workers_list, default=[1, 2])
    parser.add_argument("--pairs", type=int, default=21)
    for flag in ("resume", "net", "readme", "check", "elsewhere"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--net-file", metavar="FILE")
    parser.add_argument("--remark", metavar="TEXT")
    args = parser.parse_args()
    if speed.rank(args.pairs) == 0:
        parser.error("--pairs: 6 at least, or there is no interval")
    return args


def main():
    args = arguments()
    if args.net_file:
        args.net_file = os.path.abspath(args.net_file)
    os.chdir(ROOT)
    if args.readme:
        sys.exit(speed.publish(results_file.PATH, "bench/README.md", SVG, args.check))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measure_net(args) if args.net or args.net_file else measure(args)
    except KeyboardInterrupt:
        sys.exit("\nended; what is measured is kept: --resume goes on")
    speed.publish(results_file.PATH, "bench/README.md", SVG, False)


if __name__ == "__main__":
    main()
