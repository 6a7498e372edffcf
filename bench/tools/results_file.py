# SPDX-License-Identifier: MIT OR 0BSD
"""bench/results/results.json: all figures, with machine and versions. peers.py uses it."""
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import speed

PATH = "bench/results/results.json"

# Commands that print versions.
TOOLS = {
    "volt": (("cc", os.environ.get("CC", "cc"), "--version"),),
    "tokio": (("rustc", "rustc", "--version"),),
    "go": (("go", "go", "version"),),
    "cpp": (("c++", os.environ.get("CXX", "c++"), "--version"),
            ("asio", "dpkg-query", "-W", "-f", "${Version}", "libasio-dev"),
            ("tbb", "pkg-config", "--modversion", "tbb")),
    "libuv": (("libuv", "bench/peers/libuv/build.sh", "--version"),),
    "pth": (("pth", "pth-config", "--version"),),
    "zig": (("zig", *os.environ.get("ZIG", "python3 -m ziglang").split(), "version"),
            ("blitz-io", "grep", "-F", " .version =",
             os.environ.get("BLITZ", "build/peers/zig/blitz-io") + "/build.zig.zon")),
}

# ---- machine and versions

def first_line(*command):
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else None


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"^model name\s*: (.*)$", f.read(), re.MULTILINE)
    return {"cpu": model[1] if model else os.uname().machine, "cpus": os.cpu_count(),
            "kernel": re.match(r"[\d.]*\d", os.uname().release)[0]}


def crate_versions(directory):
    """The dependencies of Cargo.toml, in the versions of Cargo.lock."""
    with open(f"{directory}/Cargo.toml", "rb") as f:
        asked = set(tomllib.load(f).get("dependencies", {}))
    with open(f"{directory}/Cargo.lock", "rb") as f:
        locked = tomllib.load(f)["package"]
    return {p["name"]: p["version"] for p in locked if p["name"] in asked - {"libc"}}


def commit():
    """The commit of HEAD, with -dirty if measured files differ; results do not count."""
    what = ("--", "volt.h", "bench", f":!{PATH}", ":!bench/results/speed.svg", ":!bench/README.md")
    if not (head := first_line("git", "rev-parse", "--short", "HEAD")):
        return {}
    clean = subprocess.run(["git", "diff", "--quiet", "HEAD", *what]).returncode == 0
    return {"commit": head if clean else head + "-dirty"}


def version_of(command):
    return re.search(r"\d+(\.\d+)+", (first_line(*command) or "").removeprefix("1:"))


def versions(directories):
    """The versions of volt.h, of the peers in these directories, and of their build tools."""
    with open("volt.h", encoding="utf-8") as f:
        found = {"volt.h": re.search(r"^// volt.h ([\d.]+) - ", f.read(), re.MULTILINE)[1]}
    found |= commit()
    for directory in directories:
        if os.path.exists(f"bench/peers/{directory}/Cargo.lock"):
            found |= crate_versions(f"bench/peers/{directory}")
    tools = [t for d in ("volt", *directories) for t in TOOLS.get(d, ())]
    return found | {name: v[0] for name, *command in tools if (v := version_of(command))}


# ---- results

def load():
    if not os.path.exists(PATH):
        return {"machine": machine(), "runs": {}, "rows": []}
    with open(PATH, encoding="utf-8") as f:
        return json.load(f)


def save(results):
    """A row on a line of its own, so that a diff shows the rows that were measured again."""
    results["rows"].sort(key=lambda r: (speed.order(r["row"]), r["workers"]))
    used = {r["run"] for r in results["rows"]} | {max(results["runs"])}  # --resume needs the last
    runs = {k: v for k, v in results["runs"].items() if k in used}
    rows = ",\n".join("    " + json.dumps(r) for r in results["rows"])
    head = json.dumps({"machine": results["machine"], "runs": runs}, indent=2)[:-2]
    with open(PATH + ".tmp", "w", encoding="utf-8") as f:
        f.write(f'{head},\n  "rows": [\n{rows}\n  ]\n}}\n')
    os.replace(PATH + ".tmp", PATH)


def put(results, result, name):
    key = (result["row"], result["workers"])
    results["rows"] = [r for r in results["rows"] if (r["row"], r["workers"]) != key]
    results["rows"].append(result | {"run": name})
    save(results)


def begin(results, directories, elsewhere=False, remark=None):
    """The name of the run. Refuses the figures of another machine than that of the table, unless
    that is intended: then the run names its machine, and the table its rows."""
    here = machine()
    run = {"command": " ".join(["bench/tools/peers.py", *sys.argv[1:]]),
           "versions": versions(directories)}
    if not results["rows"]:
        results["machine"] = here
    elif results["machine"] != here:
        if not elsewhere:
            sys.exit(f"{PATH} is of another machine, {results['machine']}: put it elsewhere first, "
                     "or add to it with --elsewhere")
        run["machine"] = here
    if remark:
        run["remark"] = remark
    name = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    results["runs"][name] = run
    save(results)
    return name
