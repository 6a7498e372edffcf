# SPDX-License-Identifier: MIT OR 0BSD
"""Presents the figures of bench/results/results.json: intervals, verdicts, bench/README.md's
section, the drawing. peers.py uses it."""
import json
import math
import os
import re
import statistics
from html import escape

MARGIN = 1.03      # how far from 1 the nearer end of an interval must lie to count
CPU_MARGIN = 1.05  # how much more CPU time a faster row may take
BEGIN, END = "<!-- speed: make bench-peers -->", "<!-- /speed -->"

GROUPS = (
    ("Tasks", r"S(1|2|6|7o?|8|9.|10)$"),
    ("Work that comes from other threads", r"S|N7[ab]$"),
    ("Timers", r"T"),
    ("Locks and channels", r"C"),
    ("Files", r"F"),
    ("Child processes", r"P"),
    ("Memory", r"N8$"),
    ("Servers", r"N"),
)

# ---- figures


def rank(n):
    """The median of the population of n figures lies between the figure of this rank, from 1, and
    that of the same rank from the end, with a confidence of 95 % or more. 0: n is too small."""
    p, below, k = 0.5 ** n, 0.0, 0
    while below + p <= 0.025:
        below += p
        p = p * (n - k) / (k + 1)
        k += 1
    return k


def interval(values):
    """Median, lower and upper end."""
    ordered, k = sorted(values), max(1, rank(len(values)))
    return statistics.median(ordered), ordered[k - 1], ordered[-k]


def verdict(result, peer):
    """win; trade: faster but for more CPU time; tie; loss. Of peer's times over volt's."""
    ratio, cpu = peer[f"{result['by']}_ratio"], peer["cpu_ratio"]
    if ratio[1] > MARGIN:
        return "win" if cpu is None or cpu[0] >= 1 / CPU_MARGIN else "trade"
    return "loss" if ratio[2] < 1 / MARGIN else "tie"


def judged(result):
    """With the peer that comes closest to volt, or leads by most."""
    key = f"{result['by']}_ratio"
    rated = [p for p in result["peers"] if p[key]]
    best = min(rated, key=lambda p: p[key][0], default=None)
    found = {"best": rated.index(best), "verdict": verdict(result, best)} if best else \
        {"best": None, "verdict": None}
    return result | {"peers": rated + [p for p in result["peers"] if not p[key]]} | found


def best_of(result):
    return None if result["best"] is None else result["peers"][result["best"]]


def group_of(row):
    return next((i for i, (_, rows) in enumerate(GROUPS) if re.match(rows, row)), len(GROUPS) - 1)


def order(row):
    """Orders by group, then by letter, number, and the rest."""
    letter, number, rest = re.match(r"(\D*)(\d*)(.*)", row).groups()
    return group_of(row), letter, int(number or 0), rest


def line(result):
    """Progress: the result of a row in one line."""
    workers = "1 worker" if result["workers"] == 1 else f"{result['workers']} workers"
    best, head = best_of(result), f"{result['row']}, {workers}: "
    if not best:
        return head + "no peer"
    return (f"{head}{ratio_text(best[result['by'] + '_ratio'])} "
            f"{who(best)}, {result['verdict']}")


# ---- text

def digits(x, most=3):
    """Three significant digits, but at most `most` decimals; with separators for thousands."""
    if x is None:
        return ""
    if abs(x) >= 1000:
        return f"{float(f'{x:.3g}'):,.0f}"
    places = 0 if x == 0 else 2 - math.floor(math.log10(abs(x)))
    return f"{x:.{max(0, min(places, most))}f}"


def times(x):
    return digits(x, 2)


def ratio_text(ratio):
    if not ratio:
        return ""
    return f"{times(ratio[0])} ({times(ratio[1])} to {times(ratio[2])})"


def who(peer):
    return peer["peer"] + (f", {peer['variant']}" if peer["variant"] else "")


def who_does_what(peer, result):
    """With the peer's own description, where it differs from volt's."""
    what = peer.get("what", "").replace("|", "\\|")
    return who(peer) + (f": {what}" if what not in ("", result["what"]) else "")


def marked(text, is_worse):
    return f"**{text}**" if text and is_worse else text


def wakes_of(result, name):
    entries = [result["volt"]] if name == "volt" else \
        [p for p in result["peers"] if p["peer"] == name]
    return digits(entries[0].get("wakes_per_op")) if entries else ""


def cells_of_best(result):
    """Peer, both ratios, verdict; losses in bold."""
    best, lost = best_of(result), result["verdict"] == "loss"
    if not best:
        return ["none", "", "", ""]
    wall, cpu = best["wall_ratio"], best["cpu_ratio"]
    wall_lost = lost if result["by"] == "wall" else bool(wall) and wall[2] < 1 / MARGIN
    cpu_lost = bool(cpu) and cpu[0] < 1 / CPU_MARGIN
    return [who_does_what(best, result), marked(ratio_text(wall), wall_lost),
            marked(ratio_text(cpu), cpu_lost), marked(result["verdict"], lost)]


def floor_text(result):
    """By the figure that counts; older results have the wall time only."""
    found = (f.get(f"{result['by']}_ratio", f.get("wall_ratio")) for f in result["floors"])
    return ", ".join(times(f[0]) for f in found if f)


def is_memory(result):
    return result["by"] == "bytes"


def is_server(result):
    return "rate" in result["volt"] and not is_memory(result)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(r) + " |" for r in rows] + [""]


def note(result):
    """Of a row with fewer rounds than most, with disturbed ones, or of another machine."""
    found = [f"{result['pairs']} rounds"] if result["pairs"] < 21 else []
    disturbed = result.get("load", {}).get("disturbed_rounds", 0)
    found += [f"{disturbed} disturbed"] if disturbed else []
    return ", ".join(found + (["another machine"] if result.get("is_elsewhere") else []))


def what_of(result):
    said = result["what"].replace("|", "\\|")
    return f"{said} ({note(result)})".lstrip() if note(result) else said


def program_table(results):
    head = ["row", "what", "workers", "ns", "CPU ns", "best peer", "wall, times", "CPU, times", "",
            "wakes", "Tokio's", "over the floor"]
    return table(head, [
        [r["row"], what_of(r), str(r["workers"]), digits(r["volt"]["wall_ns"]),
         digits(r["volt"]["cpu_ns"]), *cells_of_best(r), wakes_of(r, "volt"), wakes_of(r, "tokio"),
         floor_text(r)] for r in results])


def server_table(results):
    head = ["row", "what", "workers", "requests/s", "p50 us", "p99 us", "CPU us", "best peer",
            "wall, times", "CPU, times", "", "wakes", "Tokio's", "over a bare loop"]
    return table(head, [
        [r["row"], what_of(r), str(r["workers"]), digits(r["volt"].get("rate")),
         digits(r["volt"].get("p50_us") or None), digits(r["volt"].get("p99_us") or None),
         digits(r["volt"].get("cpu_us")), *cells_of_best(r),
         wakes_of(r, "volt"), wakes_of(r, "tokio"), floor_text(r)] for r in results])


def bytes_of(peer):
    return f"{who(peer)} {digits(peer['bytes'])}"


def memory_table(results):
    head = ["row", "what", "bytes", "best peer", "times", "", "others", "bare loop"]
    rows = []
    for r in results:
        best, lost = best_of(r), r["verdict"] == "loss"
        others = ", ".join(bytes_of(p) for p in r["peers"] if p is not best)
        bare = [r["volt"]["bytes"] / f["bytes_ratio"][0] for f in r["floors"] if "bytes_ratio" in f]
        rows.append([r["row"], what_of(r), digits(r["volt"]["bytes"]), bytes_of(best),
                     marked(ratio_text(best["bytes_ratio"]), lost), marked(r["verdict"], lost),
                     others, ", ".join(map(digits, bare))])
    return table(head, rows)


def tables(rows):
    lines = []
    for i, (title, _) in enumerate(GROUPS):
        mine = [r for r in rows if group_of(r["row"]) == i]
        if mine:
            lines += [f"**{title}**", ""]
        memory, servers = filter(is_memory, mine), filter(is_server, mine)
        programs = (r for r in mine if not is_memory(r) and not is_server(r))
        for kind, make in ((programs, program_table), (memory, memory_table),
                           (servers, server_table)):
            lines += make(found) if (found := list(kind)) else []
    return lines


def summary(rows):
    """Counts the verdicts, and names the losses."""
    rated = [r for r in rows if best_of(r)]
    count = {v: [r for r in rated if r["verdict"] == v] for v in ("win", "trade", "tie", "loss")}
    lead = [best_of(r)[r["by"] + "_ratio"][0] for r in count["win"]]
    text = f"Of {len(rated)} rows volt.h is faster than its best peer in {len(count['win'])}"
    if lead:
        text += f" ({times(statistics.median(lead))} times in the median)"
    if count["trade"]:
        text += f", in {len(count['trade'])} more for more CPU time"
    text += f", slower in {len(count['loss'])}, and neither with certainty in {len(count['tie'])}"
    lost = ", ".join(named(r) for r in count["loss"])
    return f"{text}. Slower: {lost}." if lost else f"{text}."


def named(result):
    return result["row"] + (f" with {result['workers']}" if result["workers"] != 1 else "")


def wrapped(text, width=100):
    """Wraps into lines; text between backquotes stays in one."""
    words, lines = re.findall(r"(?:`[^`]*`|\S)+", text), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def versions_text(runs, rows, before):
    """Of everything that was measured in these runs, which are in their order. Without the versions
    that are in `before`, and as a dictionary, which is complete."""
    newest = {}
    for run in runs:
        newest |= run["versions"]
    for peer in (p for r in rows for p in r["peers"] if "version" in p):
        newest[peer["peer"]] = peer["version"]
    commits = dict.fromkeys(filter(None, (run["versions"].get("commit") for run in runs)))
    newest.pop("commit", None)
    if commits:  # otherwise they are not of a repository
        newest["commit"] = ", ".join(commits)
    new = (f"{k} {v}".strip() for k, v in newest.items() if before.get(k) != v)
    return ", ".join(new), newest


def days_text(names):
    days = sorted({name[:10] for name in names})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def version_text(name, version):
    """Some programs print their name with the version."""
    return version if version.lower().startswith(name) else f"{name} {version}".strip()


def machine_text(machine):
    return f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}"


def elsewhere_text(results, before):
    """Of the rows that other machines have measured: machine, day, remark, versions."""
    runs = results["runs"]
    text = ""
    kinds = {}
    for name in sorted({r["run"] for r in results["rows"] if "machine" in runs[r["run"]]}):
        run = runs[name]
        kinds.setdefault((machine_text(run["machine"]), run.get("remark", "")), []).append(name)
    for (machine, remark), names in kinds.items():
        rows = [r for r in results["rows"] if r["run"] in names]
        versions, _ = versions_text([runs[n] for n in names], rows, before)
        text += f" {', '.join(dict.fromkeys(r['row'] for r in rows))}: {machine}, " \
            f"{days_text(names)}; {versions}." + (f" {remark}" if remark else "")
    return text


def origin(results):
    """Machines, versions, days, commands."""
    runs = results["runs"]
    rows = [r for r in results["rows"] if "machine" not in runs[r["run"]]]
    names = sorted(name for name in runs if "machine" not in runs[name])
    of_rows = {r["run"] for r in rows}
    _, newest = versions_text([runs[n] for n in names], rows, {})
    commits = versions_text([runs[n] for n in names if n in of_rows], [], {})[1].get("commit")
    newest = {k: v for k, v in newest.items() if k != "commit"} | \
        ({"commit": commits} if commits else {})
    versions = ", ".join(version_text(k, v) for k, v in newest.items())
    return wrapped(f"{machine_text(results['machine'])}, {days_text(names)}; {versions}."
                   f"{elsewhere_text(results, newest)} "
                   "`make bench-peers` measures all rows but those of servers again, "
                   "`make bench-peers ROWS=\"S6 S8\"` these rows, "
                   "`bench/tools/peers.py --net N7s N8` rows of servers; "
                   "[results.json](results/results.json) has every figure, and its commit.")


READING = """Times are those of the best peer over volt's in the same round: over 1 volt is faster.
Bold are the time of a loss, and a CPU time of 0.95 or less. Each is the median of 21 rounds, in which every program runs once, in a
process of its own, and in brackets where it lies at 95 %. Faster or slower counts from 3 %; for
more CPU time: 5 % and more. Of a peer's variants the best counts, and is named. Figures are ns per
operation, or the latency that the row names; wakes are threads that slept and were woken, per
operation; over the floor: volt's time over that of the bare data structures, without and with
atomic operations, or in Files that of the bare system call."""


def by_cpu_text(rows):
    found = dict.fromkeys(r["row"] for r in rows if r["by"] == "cpu")
    return f" By CPU time: {', '.join(found)}." if found else ""


def section(results):
    rows = [r | {"is_elsewhere": "machine" in results["runs"][r["run"]]} for r in results["rows"]]
    lines = [BEGIN, *wrapped(summary(rows)), "",
             "![Times of the best peer over volt.h's, row by row](results/speed.svg)", "",
             *wrapped(READING + by_cpu_text(rows)), "", "<details><summary>All rows</summary>", "", *tables(rows),
             "</details>", "", *origin(results), END]
    return "\n".join(lines)


# ---- the drawing: a line for each row and number of workers, on a logarithmic scale

WIDTH, LINE, TOP = 880, 17, 48
BAR_LEFT, BAR_RIGHT, PEER_LEFT = 310, 735, 752  # of the scale; of the peers' names
COLORS = {"win": "#2f8f5b", "trade": "#8a7fc7", "tie": "#8b949e", "loss": "#d1603d"}
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600 } .end { text-anchor: end } .mid { text-anchor: middle }
.quiet { fill: #59636e }
.grid { stroke: #d1d9e0 } .one { stroke: #59636e } .whisker { stroke: #1f2328 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
.whisker { stroke: #f0f6fc } }
</style>"""
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Scale:
    """Marks on the axis for the ratios of all rows; 1 is among them."""

    def __init__(self, rows):
        ratios = [x for r in rows for x in bar_of(r)[1:]]
        low = max([t for t in TICKS if t <= min(ratios)], default=TICKS[0])
        high = min([t for t in TICKS if t >= max(ratios)], default=TICKS[-1])
        self.low, self.high = min(low, 0.5), max(high, 2)

    def x(self, ratio):
        inside = min(max(ratio, self.low), self.high)
        part = math.log(inside / self.low) / math.log(self.high / self.low)
        return round(BAR_LEFT + part * (BAR_RIGHT - BAR_LEFT), 1)

    def ticks(self):
        return [t for t in TICKS if self.low <= t <= self.high]


def bar_of(result):
    return best_of(result)[f"{result['by']}_ratio"]


def text(x, y, what, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(what)}</text>'


def rule(x1, y1, x2, y2, kind):
    return f'<path d="M{x1} {y1}L{x2} {y2}" class="{kind}"/>'


def draw_row(result, y, scale, is_first):
    """Name and description of the row, once; workers, bar, whisker, peer."""
    ratio, low, high = bar_of(result)
    at, one = scale.x(ratio), scale.x(1)
    middle = y + LINE / 2
    label = f"{result['row']}  {result['what']}"
    label = label if len(label) <= 44 else label[:43] + "…"
    parts = [text(0, y + 12.5, label)] if is_first else []
    return parts + [
        text(288, y + 12.5, str(result["workers"]), "quiet end"),
        f'<rect x="{min(at, one)}" y="{y + 4}" width="{max(1, round(abs(at - one), 1))}" '
        f'height="{LINE - 8}" fill="{COLORS[result["verdict"]]}"/>',
        rule(scale.x(low), middle, scale.x(high), middle, "whisker"),
        text(PEER_LEFT, y + 12.5, f"{times(ratio)}  {best_of(result)['peer']}"),
    ]


def draw_group(title, rows, y, scale):
    parts = [text(0, y + 12.5, title, "head")]
    seen = set()
    for i, r in enumerate(rows, 1):
        parts += draw_row(r, y + i * LINE, scale, r["row"] not in seen)
        seen.add(r["row"])
    return parts


def draw_key():
    """The meaning of colours that the sides do not show."""
    return [f'<rect x="0" y="5" width="10" height="10" fill="{COLORS["trade"]}"/>',
            text(14, 14, "faster for more CPU time", "quiet"),
            f'<rect x="180" y="5" width="10" height="10" fill="{COLORS["tie"]}"/>',
            text(194, 14, "not certain", "quiet")]


def draw_axis(scale, bottom):
    parts = [text(scale.x(1) + 8, 14, "volt.h is faster", "quiet"),
             text(scale.x(1) - 8, 14, "slower", "quiet end"),
             text(288, 34, "workers", "quiet end"),
             text(PEER_LEFT, 34, "best peer", "quiet"), *draw_key()]
    for t in scale.ticks():
        parts += [text(scale.x(t), 34, f"{t:g}", "quiet mid"),
                  rule(scale.x(t), 40, scale.x(t), bottom, "one" if t == 1 else "grid")]
    return parts


def svg(results):
    rows = [r for r in results["rows"] if best_of(r)]
    if not rows:
        return ""
    scale, body, y = Scale(rows), [], TOP
    for i, (title, _) in enumerate(GROUPS):
        mine = [r for r in rows if group_of(r["row"]) == i]
        if mine:
            body += draw_group(title, mine, y, scale)
            y += (len(mine) + 1) * LINE + 8
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
            f'viewBox="0 0 {WIDTH} {y}" role="img">')
    title = "<title>Times of the best peer over volt.h's, row by row</title>"
    return "\n".join([head, title, STYLE, *draw_axis(scale, y - 4), *body, "</svg>"]) + "\n"


# ---- files

def with_section(readme, results):
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} or no {END}")
    return before + section(results) + after


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def publish(results_path, readme_path, svg_path, is_check):
    """Writes both, or only checks whether that would change them; returns an error or None."""
    results = json.loads(read(results_path) or "{}")
    if not results:
        return f"there is no {results_path}"
    stale = []
    for path, is_now in ((readme_path, with_section(read(readme_path), results)),
                         (svg_path, svg(results))):
        if read(path) == is_now:
            continue
        stale.append(path)
        if not is_check:
            with open(path, "w", encoding="utf-8") as f:
                f.write(is_now)
    if is_check and stale:
        return f"{', '.join(stale)}: not what {results_path} gives; bench/tools/peers.py --readme"
    return None
