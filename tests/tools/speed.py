#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Checks that bench/README.md agrees with bench/results/results.json about speed, and that
bench/tools/peers.py computes its figures correctly. Ends with "speed: N passed, N failed, N
skipped"."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench/tools"))
import peers  # noqa: E402
import speed  # noqa: E402

counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(name, is_so, said=""):
    counts["passed" if is_so else "failed"] += 1
    print(f"  {'ok   ' if is_so else 'FAIL '} {name}{'' if is_so else ': ' + str(said)}")


# ---- figures

def program(wall, cpu, **more):
    return {"variant": "", "wall_ratio": wall, "cpu_ratio": cpu, "wall_ns": 12, "cpu_ns": 11} | more


def judged(*of_peers, by="wall"):
    return speed.judged({"row": "S1", "what": "spawn", "workers": 1, "pairs": 21, "by": by,
                         "volt": {"peer": "volt", "wall_ns": 10.0, "cpu_ns": 9.0},
                         "peers": list(of_peers), "floors": []})


def check_intervals():
    found = [speed.rank(n) for n in (5, 6, 8, 9, 21)]
    check("ranks of the interval", found == [0, 1, 1, 2, 6], found)
    found = speed.interval(list(range(21, 0, -1)))
    check("an interval of 21", found == (11, 6, 16), found)


def check_verdicts():
    even = [1.0, 0.99, 1.01]
    cases = (
        ("win", [1.2, 1.04, 1.3], even, "wall"),
        ("win", [1.2, 1.04, 1.3], [0.96, 0.9, 1.0], "wall"),
        ("trade", [1.2, 1.04, 1.3], [0.95, 0.9, 1.0], "wall"),
        ("tie", [1.2, 1.02, 1.3], even, "wall"),
        ("tie", [0.98, 0.9, 0.98], even, "wall"),
        ("loss", [0.95, 0.9, 0.97], [2.0, 1.9, 2.1], "wall"),
        ("win", even, [1.2, 1.1, 1.3], "cpu"),
        ("loss", [2.0, 1.9, 2.1], [0.5, 0.4, 0.6], "cpu"),
    )
    for expected, wall, cpu, by in cases:
        found = judged(program(wall, cpu, peer="a"), by=by)["verdict"]
        check(f"{expected} by {by} at {wall}, {cpu}", found == expected, found)
    found = judged(program([2, 1.9, 2.1], even, peer="slow"),
                   program([0.8, 0.7, 0.9], even, peer="fast"))
    check("the fastest peer counts", (speed.best_of(found)["peer"], found["verdict"]) ==
          ("fast", "loss"), found)
    found = judged()["verdict"]
    check("no verdict without a peer", found is None, found)


def check_ratios():
    """Peer over volt of the same round: not that of the medians."""
    def runs(*walls):
        c = peers.Candidate(None, "S1", 1, "", "")
        c.runs = [peers.Figures(w, w, 0, 0, "", 1, 0, 0, 0) for w in walls]
        return c
    found = peers.ratio_of(runs(2, 30, 8, 50, 12, 70), runs(1, 10, 2, 10, 2, 10), "wall")
    check("ratios of rounds", found == [4.5, 2, 7], found)
    found = peers.ratio_of(runs(1, 0), runs(1, 1), "wall")
    check("no ratio without a time", found is None, found)


def check_output():
    line = "S1 1 9.00 9.50 9.40 0.1 200  4 to 4 tasks"
    found, what = peers.figures_in(f'row\n{line}\n{{"row":"S1","ops":200}}\n', "S1")
    check("the text before the figures", what == "4 to 4 tasks" and found["ops"] == 200, what)
    try:
        peers.figures_in(f"{line}\n", "S1")
        check("no figures are noticed", False)
    except peers.Failed:
        check("no figures are noticed", True)


def check_names():
    tokio = peers.Program("tokio", "mimalloc", "")
    found = [peers.candidate(tokio, row, peers.split_row("tokio", row, ())[1], 1).name()
             for row in ("S9a", "S9a:unbuffered", "C7a", "C7a:kanal")]
    check("tags are variants or libraries", found ==
          ["tokio (mimalloc)", "tokio (unbuffered, mimalloc)", "async-channel (mimalloc)",
           "kanal (mimalloc)"], found)
    found = [peers.split_row("asio", row, ("S9a",)) for row in ("S9a", "S9aco")]
    check("endings are tags", found == [("S9a", ""), ("S9a", "coroutines")], found)
    found = [peers.workers_of(row, [1, 2, 4]) for row in ("S10", "S1", "C1at", "C10a")]
    check("workers", found == [[1, 2, 4], [1, 2], [1], [1, 2]], found)
    rows = ["S1", "S2", "S6", "S9a", "S10", "S3", "S12a", "N7a", "T1a", "C1at", "C10a", "N1", "N7v"]
    found = sorted(reversed(rows), key=speed.order)
    check("order of rows", found == rows[:5] + ["N7a"] + rows[5:7] + rows[8:], found)


def taken(*lines):
    """The rows that lines of net_ratio.sh become."""
    results = {"machine": {}, "runs": {"a": {}}, "rows": []}
    put, peers.results_file.put = peers.results_file.put, \
        lambda results, result, name: results["rows"].append(result | {"run": name})
    try:
        peers.take_net(map(json.dumps, lines), results, "a")
    finally:
        peers.results_file.put = put
    return results["rows"][-1]


def check_servers():
    base = {"row": "N8", "peer": "volt", "version": "0", "pairs": 9, "rate": 1, "bytes": 200.0}
    ratios = {f"{m}_{k}": 1.0 for m in ("wall", "cpu") for k in ("ratio", "low", "high")}
    def peer(name, ratio):
        return base | ratios | {"peer": name, "bytes": 200 * ratio, "bytes_ratio": ratio,
                                "bytes_low": ratio, "bytes_high": ratio}
    row = taken(base, peer("raw", 0.25), peer("go", 10.0), peer("tokio", 0.5))
    found = (row["by"], row["verdict"], speed.best_of(row)["peer"], speed.floor_text(row))
    check("memory counts by bytes", found == ("bytes", "loss", "tokio", "4.00"), found)
    said = speed.memory_table([row])[2]
    check("a table of memory has every peer and the bare loop",
          "| **0.50 (0.50 to 0.50)** | **loss** | go 2,000 | 50.0 |" in said, said)
    base = {"row": "N7s", "peer": "volt", "version": "0", "pairs": 9, "rate": 1}
    slow = base | ratios | {"peer": "go", "cpu_ratio": 1.5, "cpu_low": 1.4, "cpu_high": 1.6}
    found = taken(base, slow)["verdict"]
    check("datagrams in bursts count by CPU time", found == "win", found)


# ---- files

def check_elsewhere():
    """Rows of another machine are marked, with machine, remark and versions, and counted."""
    runs = {"2000-01-01T00:00:00Z": {"command": "", "versions": {"volt.h": "0", "go": "1"}},
            "2000-01-02T00:00:00Z": {"command": "", "versions": {"volt.h": "0", "go": "2"},
                                     "machine": {"cpu": "D", "cpus": 4, "kernel": "7"},
                                     "remark": "It was busy."}}
    rows = [judged(program([1, 1, 1], [1, 1, 1], peer="tokio")) | {"run": run, "row": row}
            for row, run in zip(("S1", "S2"), sorted(runs))]
    said = speed.section({"machine": {"cpu": "C", "cpus": 2, "kernel": "6"}, "runs": runs,
                          "rows": rows}).replace("\n", " ")
    check("rows of another machine are marked", "| S2 | spawn (another machine) |" in said and
          "| S1 | spawn |" in said, said)
    check("their machine is named", "C, 2 CPUs, Linux 6, 2000-01-01; volt.h 0, go 1. S2: D, "
          "4 CPUs, Linux 7, 2000-01-02; go 2. It was busy." in said, said)


def check_origin():
    """The commits of the rows are named once each, by age, and no others."""
    runs = {f"2000-01-0{day}T00:00:00Z": {"command": "", "versions": {"commit": commit}}
            for day, commit in ((1, "aaa"), (2, "bbb"), (3, "ccc"), (4, "aaa"), (5, "ddd"))}
    results = {"machine": {"cpu": "C", "cpus": 2, "kernel": "6"}, "runs": runs,
               "rows": [judged(program([1, 1, 1], [1, 1, 1], peer="tokio")) | {"run": run}
                        for run in sorted(runs, reverse=True) if "-03T" not in run]}
    said = " ".join(speed.origin(results))
    check("the commits of the rows are named", "; commit aaa, bbb, ddd. " in said, said)
    for run in runs.values():
        run["versions"] = {"volt.h": "0"}
    said = " ".join(speed.origin(results))
    check("no commit is named where there is none", "commit" not in said.split(". ")[0], said)


def check_publish():
    """A published section passes; a changed digit, there or in the drawing, fails."""
    wall, cpu = [1.25, 1.2, 1.3], [0.5, 0.4, 0.6]
    rows = [judged(program(wall, cpu, peer="tokio")) | {"run": "2000-01-01T00:00:00Z"}]
    results = {"machine": {"cpu": "C", "cpus": 2, "kernel": "6"}, "rows": rows,
               "runs": {"2000-01-01T00:00:00Z": {"command": "", "versions": {"volt.h": "0"}}}}
    with tempfile.TemporaryDirectory() as work:
        paths = [os.path.join(work, name) for name in ("results.json", "README.md", "speed.svg")]
        write(paths[0], json.dumps(results))
        write(paths[1], f"a\n{speed.BEGIN}\n{speed.END}\nb\n")
        check("an empty section is noticed", speed.publish(*paths, True))
        speed.publish(*paths, False)
        said = speed.publish(*paths, True)
        check("a section that is published is right", said is None, said)
        readme = speed.read(paths[1])
        check("the text around it stays", readme.startswith("a\n<") and readme.endswith(">\nb\n"))
        for path, text in zip(paths[1:], ("1.25 (1.20 to 1.30)", "1.25  tokio")):
            was = speed.read(path)
            write(path, was.replace(text, text.replace("1.25", "1.26")))
            check(f"{text} is there, and its change noticed",
                  text in was and speed.publish(*paths, True), was)
            write(path, was)


def write(path, content):
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


def check_readme():
    if not os.path.exists(os.path.join(ROOT, peers.results_file.PATH)):
        counts["skipped"] += 1
        print(f"  skip  bench/README.md: there is no {peers.results_file.PATH}")
        return
    done = subprocess.run([os.path.join(ROOT, "bench/tools/peers.py"), "--readme", "--check"],
                          capture_output=True, text=True)
    check("bench/README.md and bench/results/speed.svg agree with the results",
          done.returncode == 0, done.stderr.strip())


for each in (check_intervals, check_verdicts, check_ratios, check_output, check_names,
             check_servers, check_elsewhere, check_origin, check_publish, check_readme):
    each()
print(f"speed: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
