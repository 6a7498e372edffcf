# SPDX-License-Identifier: MIT OR 0BSD
"""Compares the output of examples/gdb/volt.py about tests/tools/gdb/waits.c with that program's own data.

tests/tools/gdb.sh has gdb read it when the program is stopped in ready(), or a core file of that moment
is open, after volt.py, whose names are available here, too. `want` is the file that the program
wrote; `has_macros`: it was built with -g3, with the usual macros. Prints the differences, then the
number of failures.
"""
import difflib
import json
import re

import gdb

COLUMNS = (
    "task", "name", "tag", "state", "waits_for", "at", "function", "spawned_at", "refs", "nodes",
    "group",
)  # fmt: skip
failures = []


def check(what, is_good):
    if not is_good:
        failures.append(what)
        print("failed: " + what)


def same(what, wanted, got):
    lines = list(difflib.unified_diff(sorted(wanted), sorted(got), "known", "shown", "", "", 0, ""))
    for line in lines[:40]:
        print(line)
    check(what, not lines and len(wanted) > 0)


def command(line):
    return gdb.execute(line, to_string=True)


def refused(line, why):
    try:
        command(line)
    except gdb.error as e:
        check(f"{line}: {e}", why in str(e))
        return
    check(f"{line}: was not refused", False)


def cells(text, first):
    """The rows of the tables whose first column has this title, each as a dict."""
    rows, titles = [], []
    for line in text.splitlines():
        row = re.split(r"  +", line)
        if row[0] == first:
            titles = [t.lower().replace(" ", "_") for t in row]
        elif not line.startswith("runtime"):
            rows.append(dict(zip(titles, row, strict=True)))
    return rows


def known_form(row):
    """A line of the program's file. It does not name the worker of a ring."""
    line = "|".join(str(row[c]) for c in COLUMNS)
    return re.sub(r"\|queued on ring \d+\|", "|queued on ring|", line)


def check_tasks(wanted):
    text = command("volt tasks")
    same("volt tasks", wanted, [known_form(r) for r in cells(text, "TASK")])
    rows = json.loads(command("volt tasks json"))
    none = {c: "-" for c in COLUMNS}
    shown = [{**none, **{k: v for k, v in r.items() if v is not None}} for r in rows]
    same("volt tasks json", wanted, [known_form(r) for r in shown])
    check("five runtimes", len({r["runtime"] for r in rows}) == 5)
    check_times(rows)


def check_times(rows):
    """The tasks beside the stuck ones have waited for thrice 300 ms; timers are set to 600 s."""
    of_rt = [r for r in rows if r["runtime"] == f"{int(gdb.parse_and_eval('rt')):#x}"]
    for r in rows:
        is_timer = r["state"] == "waiting" and r["waits_for"] == "timer"
        check(f"left: {r}", (r["left_s"] is not None) == is_timer)
        check(f"left: {r}", not is_timer or 500 < r["left_s"] <= 600.1)
        check(f"age: {r}", 0 <= r["age_s"] < 60)
        check(f"since: {r}", (r["since_s"] is not None) == r["state"].startswith("waiting"))
    for r in of_rt:
        check(f"since: {r}", r["since_s"] is None or 0.59 < r["since_s"] < 60)
        is_older = r["since_s"] is not None or r["name"] == "stuck_run"
        check(f"age: {r}", not is_older or r["age_s"] > 0.29)
        # than the stuck workers' last reading of a clock
        is_newer = r["state"] == "queued on injector"
        check(f"age: {r}", not is_newer or r["age_s"] == 0)


def check_ids(wanted):
    """As in a dump: the serial number of the slab, and the slot in it."""
    rows = json.loads(command("volt tasks json"))
    ids = {(r["runtime"], r["id"]) for r in rows}
    check("ids", len(ids) == len(wanted) and all(re.fullmatch(r"\d+\.\d+", i) for _, i in ids))


def check_pool():
    """One blocking call runs, a second one waits for its thread; a name is being looked up."""
    titles = [line for line in command("volt workers").splitlines() if line.startswith("runtime")]
    pools = sorted(re.findall(r"pool: .*", t)[0] for t in titles if "pool: " in t)
    check(
        f"pools {pools}",
        pools == [
            "pool: threads 0, idle 0, queued 0, jobs 0",
            "pool: threads 1, idle 0, queued 0, jobs 1",
            "pool: threads 2, idle 0, queued 1, jobs 2",
        ],
    )  # fmt: skip


def check_workers(wanted):
    """The running tasks and held locks agree with the tasks' own data."""
    shown, handed_off = [], []
    for w in cells(command("volt workers"), "WORKER"):
        index = w["worker"]
        if w["thread"].endswith(" of the pool"):
            handed_off.append(w["state"])
        if w["state"] == "blocked":
            handed_off.append("blocked")
            check(f"blocked: {w}", w["thread"] == "-" and w["task"] != "-")
            shown.append(f"{w['task']} running on {index}")
            continue
        if w["state"] != "running":
            check(f"asleep: {w}", w["state"] == "asleep" and w["task"] == w["lifo"] == "-")
            continue
        shown += [f"queued on inbox {index}"] * int(w["inbox"])
        shown += [f"queued on overflow {index}"] * int(w["overflow"])
        shown.append(f"{w['task']} running on {index}")
        shown.append(f"{w['lifo']} queued on LIFO {index}")
        shown += ["queued on ring"] * int(w["ring"])
        check(f"thread: {w}", "(LWP " in w["thread"] and int(w["polls"]) > 0)
    rows = [line.split("|") for line in wanted]
    busy = [f"{r[0]} {r[3]}" for r in rows if re.match("running on|queued on LIFO", r[3])]
    busy += [r[3] for r in rows if re.match("queued on (ring|inbox|overflow)", r[3])]
    same("volt workers", busy, shown)
    is_as_meant = sorted(handed_off) == ["asleep", "blocked"]
    check(f"one is handed off, one blocked: {handed_off}", is_as_meant)


def check_timers():
    """A worker's next timer is the first of those that tasks wait for."""
    tasks = json.loads(command("volt tasks json"))
    workers = cells(command("volt workers"), "WORKER")
    shown = [w["timer"] for w in workers if w["timer"] != "-"]
    first = min(t["left_s"] for t in tasks if t["left_s"] is not None)
    check(f"{first} is the first of {shown}", f"{first:.1f} s" == min(shown))


def check_one(wanted):
    """A task is found by its address and by that of its state, also when that lies outside."""
    for line in wanted:
        row = line.split("|")
        text = command(f"volt task {row[0]}")
        for cell in row[1:6]:
            check(f"volt task {row[0]}: {cell} in {text}", cell in text)
        state = re.search(r"^state at +(\S+)$", text, re.M)[1]
        check(f"volt task {state}", command(f"volt task {state}") == text)
    refused("volt task 1", "no task at 0x1")


def check_selection():
    """The selected thread and frame are the same afterwards."""
    command("thread 2")
    command("up")
    before = gdb.selected_thread().num, gdb.selected_frame()
    for line in ("volt tasks", "volt workers"):
        command(line)
        check(f"{line}: selection", before == (gdb.selected_thread().num, gdb.selected_frame()))
    command("thread 1")


def check_use():
    before = command("volt tasks json")
    command("volt use rt")
    check("a runtime that is named is not shown twice", command("volt tasks json") == before)
    command("volt use")
    for expression in ("rt = 0", "n_rows++", "n_rows <<= 1", "rows_lock += 1"):
        refused("volt use " + expression, "must not change anything")
    refused("volt use volt_create(0, 0)", "")
    refused("volt task", "volt task ADDRESS")
    refused("volt tasks xml", "volt tasks [json]")


def check_guest():
    """A runtime that no thread carries is found by its name alone."""
    global carried
    found, carried = carried, lambda: []
    refused("volt tasks", "name a runtime")
    command("volt use rt")
    rt = f"{int(gdb.parse_and_eval('rt')):#x}"
    tasks = json.loads(command("volt tasks json"))
    check("volt use rt", len(tasks) == 29 and {t["runtime"] for t in tasks} == {rt})
    check("volt workers", cells(command("volt workers"), "WORKER")[0]["thread"] == "-")
    command("volt use")
    carried = found


def check_macros():
    """In a program without macros of its own they equal those of the script."""
    for name, value in MACROS.items():
        check(f"{name} is {value}", int(gdb.parse_and_eval(name)) == value)


with open(want) as f:
    lines = f.read().splitlines()
check("the program knows 38 tasks", len(lines) == 38)
check_tasks(lines)
check_ids(lines)
check_pool()
check_workers(lines)
check_timers()
check_one(lines)
check_selection()
check_use()
check_guest()
if has_macros:
    check_macros()
print(f"{len(lines)} tasks, {len(failures)} failures")
