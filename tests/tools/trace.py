#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Checks that a trace written by volt_trace is valid for viewers of Chrome's format, and prints a
summary of it.

    tests/tools/trace.py FILE NAME SOURCE    polls of the task NAME must continue at a line of SOURCE
"""
import collections
import json
import re
import sys


def check(is_so, what):
    if not is_so:
        sys.exit(f"trace: {what}")


def tracks_of(events):
    """By number: the name of each, and its events in order."""
    names, tracks = {}, collections.defaultdict(list)
    for e in events:
        check(e["pid"] == 1 and isinstance(e["tid"], int) and e["ts"] >= 0, f"what is {e}?")
        if e["ph"] == "M":
            check(e["name"] == "thread_name" and e["tid"] not in names, f"track named twice: {e}")
            names[e["tid"]] = e["args"]["name"]
        else:
            tracks[e["tid"]].append(e)
    check(tracks.keys() <= names.keys(), "a track has no name")
    return names, tracks


def check_slices(events):
    """One thing at a time: each slice ends before the next begins. The last may be open."""
    current, last = None, 0
    for e in events:
        if e["ph"] not in "BE":
            continue
        check(e["ts"] >= last, f"back in time: {e}")
        last = e["ts"]
        check((e["ph"] == "E") == (current is not None), f"begins or ends out of turn: {e}")
        current = e if e["ph"] == "B" else None


def check_arrows(events):
    """Each arrow that ends began once, not later, unless its begin has been overwritten."""
    starts = {}
    for e in events:
        if e["ph"] == "s":
            starts.setdefault(e["id"], []).append(e["ts"])
    joined = 0
    for e in events:
        if e["ph"] != "f" or e["id"] not in starts:
            continue
        check(e["bp"] == "e" and min(starts[e["id"]]) <= e["ts"], f"woken after it ran: {e}")
        joined += 1
    return joined


def main():
    path, name, source = sys.argv[1:]
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    names, tracks = tracks_of(events)
    check(list(names.values()).count("outside") == 1 and len(names) > 1, f"tracks: {names}")
    for track in tracks.values():
        check_slices(track)
    joined = check_arrows(events)
    polls = [e for e in events if e["ph"] == "B" and e["name"] == name]
    pattern = re.compile(rf"{re.escape(source)}:[1-9][0-9]*")
    sites = [e["args"]["at"] for e in polls if "at" in e.get("args", {})]
    check(sites and all(pattern.fullmatch(s) for s in sites), f"sites of {name}: {sites[:5]}")
    check(joined > 0, "no arrow from a wake-up to a poll")
    times = [e["ts"] for e in events if e["ph"] != "M"]
    sleeps = sum(e["ph"] == "B" and e["name"] == "asleep" for e in events)
    steals = sum(e.get("name") == "steal" for e in events)
    print(
        f"{path}: {len(events)} events of {len(names) - 1} workers in"
        f" {(max(times) - min(times)) / 1000:.1f} ms: {len(polls)} polls of {name}, {sleeps} sleeps,"
        f" {steals} steals, {joined} arrows. Open it in https://ui.perfetto.dev"
    )


main()
