# SPDX-License-Identifier: MIT OR 0BSD
"""Shows the tasks and workers of a program that uses volt.h, in gdb, live or in a core file.

    (gdb) source examples/gdb/volt.py     or: gdb -x examples/gdb/volt.py PROGRAM CORE
    (gdb) volt tasks                      all tasks of all runtimes; volt tasks json: as JSON
    (gdb) volt workers                    what each worker does, its queues and counters
    (gdb) volt task ADDRESS               one task, by its address or by that of its state
    (gdb) volt use EXPRESSION             another volt_rt * to look at: a guest between two steps
                                          has no thread to be found by. Without one: forget them

The words are those of volt_dump, and more: ID and NAME are a task's there, its function or what
volt_name gave it, which then stands in the place of where it was spawned, too. TAG is that of
VOLT_SPAWN_WITH. AT is the innermost await: "a.c:7 < 30 < 52" was awaited at line 30, and that at
line 52. AGE and SINCE count to the last look of any worker at the clock: both are longer if all
sleep. LEFT is the time from then until a timer.
`created` has not been started, `queued` without a place is on its way to one, `held` has ended but
for a handle or waker, `running in place` has handed off its worker by volt_block_in_place. NODES
are the waits, timers and links that are armed.

A worker that was handed off is run by a thread of the pool; one `handed off` waits for such a
thread, and one that is `blocked` has found none. The first line tells the state of the pool.

The program needs debug information (-g; any -O). With -g3 all constants are the program's own;
else some are those below, and a program that does not fit them is refused. Nothing is written to
the program. For x86-64; gdb 10 or newer with Python: Debian package gdb. Tested by `make gdb-test`.
"""
import contextlib
import json
import re

import gdb

# The volt.h that this script knows, and those of its macros that only -g3 lets gdb see.
VERSION = 200
MACROS = {
    "VOLT__RUNNING": 1,
    "VOLT__NOTIFIED": 2,
    "VOLT__COMPLETE": 4,
    "VOLT__CANCELLED": 8,
    "VOLT__ROUTED": 16,
    "VOLT__HAS_EXTRA": 32,
    "VOLT__REF": 64,
    "VOLT__EXTRA_SIZE": 16,
    "VOLT__SLAB_HEAD": 128,
    "VOLT_RING_DISTANCE_BITS": 9,
    "VOLT_RING_INDEX_BITS": 32,
    "VOLT_TICK_NS": 62500,
}
# The name of a leaf's kind, and the thing it waits on: a descriptor, an object, or neither.
LEAVES = {
    "VOLT__LEAF_TIMER": "timer",
    "VOLT__LEAF_FOREVER": "forever",
    "VOLT__LEAF_JOIN": "join of {source}",
    "VOLT__LEAF_RD": "readable fd {fd}",
    "VOLT__LEAF_WR": "writable fd {fd}",
    "VOLT__LEAF_CONNECT": "connect fd {fd}",
    "VOLT__LEAF_BACKOFF": "back-off fd {fd}",
    "VOLT__LEAF_CLOCK": "clock fd {fd}",
    "VOLT__LEAF_TOKEN": "token {source}",
    "VOLT__LEAF_GROUP": "group {source}",
    "VOLT__LEAF_JOB": "blocking, {job}",
    "VOLT__LEAF_NAME": "name of {host}",
    "VOLT__LEAF_LOCK": "lock {source}",
    "VOLT__LEAF_EVENT": "event {source}",
    "VOLT__LEAF_CHAN": "channel {source}",
}
# How far the pool is with a job; NONE: it has been run, and its task is on its way.
JOBS = {
    "VOLT__JOB_NONE": "ended",
    "VOLT__JOB_QUEUED": "queued",
    "VOLT__JOB_ASSIGNED": "assigned to a thread",
    "VOLT__JOB_STARTED": "started",
}
MODES = {
    "VOLT__SELECT": "select",
    "VOLT__SELECT_BIASED": "select",
    "VOLT__JOIN_ALL": "join_all",
    "VOLT__TRY_JOIN_ALL": "try_join_all",
}
OTHERS = (
    "VOLT__CHILD", "VOLT__CHILD_ARRAY", "VOLT__ARMS", "VOLT__ARMS_N", "VOLT__ARMS_MODE",
    "VOLT__LINKED", "VOLT__HAS_GROUP_LINK", "VOLT__EXTERNAL", "VOLT__GAVE_WAKER",
)  # fmt: skip
MOST_FRAMES = 100  # inside each other: a state that is overwritten may have no end


def differs(what):
    """The program does not look like one with this script's volt.h."""
    return gdb.GdbError(f"volt: {what}: the program's volt.h is another one than this script's")


# ---- what the debug information knows


def constant(name):
    """An enumerator, or a macro as far as gdb sees it, or what stands above. None: an enumerator
    that the compiler has left out, as the program has no use for it."""
    try:
        return int(gdb.parse_and_eval(name))
    except gdb.error:
        return MACROS.get(name)


def field(struct, name):
    """The field of a struct type."""
    for f in struct.strip_typedefs().fields():
        if f.name == name:
            return f
    raise differs(f"{struct} has no {name}")


def has_field(struct, name):
    return any(f.name == name for f in struct.strip_typedefs().fields())


class Layout:
    """Reads many structs of one type: each with one access, and only the fields named."""

    def __init__(self, struct, *names):
        self.size = struct.sizeof
        self.places = [(name.split(".")[-1], *self.place(struct, name)) for name in names]

    @staticmethod
    def place(struct, path):
        at = 0
        for name in path.split("."):
            f = field(struct, name)
            at += f.bitpos // 8
            struct = f.type
        return at, at + struct.sizeof

    def read(self, address):
        data = bytes(gdb.selected_inferior().read_memory(address, self.size))
        return {name: int.from_bytes(data[a:b], "little") for name, a, b in self.places}


def text_at(address):
    """A C string: a site."""
    try:
        text = gdb.Value(address).cast(gdb.lookup_type("char").pointer())
        return text.string("utf-8", "replace")
    except gdb.error:
        return f"{address:#x}"


def function_at(address):
    block = gdb.block_for_pc(address)
    while block and not block.function:
        block = block.superblock
    return block.function.print_name.split("(")[0] if block else f"{address:#x}"


class Cache(dict):
    """Few sites and functions, many tasks."""

    def __init__(self, find):
        self.find = find

    def __missing__(self, key):
        self[key] = self.find(key)
        return self[key]


# ---- finding the runtimes

used = []  # the runtimes given to `volt use`
gdb.events.exited.connect(lambda event: used.clear())


@contextlib.contextmanager
def selection_kept():
    thread = gdb.selected_thread()
    if thread is None:
        raise gdb.GdbError("volt: no program runs, and no core file is open")
    frame = gdb.selected_frame()
    try:
        yield
    except gdb.MemoryError as e:
        raise gdb.GdbError(f"volt: {e}: overwritten, or not in the core file") from None
    finally:
        thread.switch()
        frame.select()


def carried():
    """The threads that carry a worker, and the workers."""
    symbols = gdb.lookup_static_symbols("volt__tls")
    if not symbols:
        raise gdb.GdbError(
            "volt: no volt__tls in the debug information: compile the file that defines"
            " VOLT_IMPLEMENTATION with -g"
        )
    trouble = None
    found = []
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
        thread.switch()
        for symbol in symbols:
            try:
                worker = symbol.value()
            except gdb.error as e:  # also a library whose memory this thread has never touched
                trouble = e
                continue
            if not worker.is_optimized_out and int(worker):  # -flto leaves a second symbol, empty
                found.append((thread, worker.dereference()))
    if trouble and not found and not used:
        raise gdb.GdbError(f"volt: {trouble}: name a runtime by `volt use`")
    return found


def select_frame_of_volt():
    """In the selected thread: there gdb sees the macros of volt.h, if there are any."""
    frame = gdb.newest_frame()
    while frame:
        if (frame.name() or "").startswith("volt__"):
            frame.select()
            return
        frame = frame.older()


def check_version():
    expected = [f"volt__bad_resume_with_VOLT_DEBUG_{debug}_{VERSION}" for debug in (0, 1)]
    if any(gdb.lookup_global_symbol(name) for name in expected):
        return
    names = gdb.execute("info functions -q ^volt__bad_resume_with_VOLT_DEBUG_", to_string=True)
    versions = {int(v) for v in re.findall(r"volt__bad_resume_with_VOLT_DEBUG_[01]_(\d+)", names)}
    if versions and VERSION not in versions:
        raise differs(f"VOLT_VERSION is {versions}, not {VERSION}")


def runtimes():
    """All that are known; a frame of volt.h is selected if there is one."""
    check_version()
    threads, found = {}, {}
    for thread, worker in carried():
        thread.switch()
        select_frame_of_volt()
        threads[int(worker.address)] = thread
        found.setdefault(int(worker["rt"]), worker["rt"])
    for rt in used:
        found.setdefault(int(rt), rt)
    if not found:
        raise gdb.GdbError("volt: no thread carries a worker: name a runtime by `volt use`")
    constants = {name: constant(name) for name in (*MACROS, *LEAVES, *JOBS, *MODES, *OTHERS)}
    return [Runtime(rt.dereference(), threads, constants) for rt in found.values()]


# ---- a runtime, its workers and tasks


class Runtime:
    """What does not change while the program is stopped."""

    def __init__(self, value, threads, constants):
        self.value = value
        self.address = int(value.address)
        self.constants = constants
        self.site, self.function = Cache(text_at), Cache(function_at)
        workers = value["workers"]
        self.workers = [
            Worker(self, workers[i].dereference(), threads) for i in range(int(value["started"]))
        ]
        self.ns = max((w.ns for w in self.workers), default=0)
        self.ms = self.ns // 1000000
        self.is_traced = has_field(value["workers"].type.target().target(), "trace")
        self.find_layouts()
        self.places = {}
        self.find_queued()
        for w in self.workers:
            w.check_clock()

    def __getitem__(self, name):
        if self.constants[name] is None:
            raise differs(f"no {name} in the debug information")
        return self.constants[name]

    def find_layouts(self):
        slab = field(field(self.value.type, "slabs").type, "first").type.target()
        task = field(slab, "free").type.target()
        worker = field(self.value.type, "workers").type.target().target()
        node = field(field(worker, "cx").type, "frame_").type.target()
        self.slab_layout = Layout(
            slab, "all_next", "slot_size", "cap", "carved", "bytes", "serial"
        )
        self.task_layout = Layout(
            task, "word", "next", "u.fn", "u.result", "spawn_site", "wait_site", "wait", "wait_ms",
            "spawn_ms", "flags", "n_armed",
        )  # fmt: skip
        self.frame_layout = Layout(node, "resume_line_", "state_", "kind_", "key_", "source_")
        self.link_layout = Layout(gdb.lookup_type("struct volt__group_link"), "group")
        self.extra_layout = Layout(gdb.lookup_type("struct volt__extra"), "tag")

    def find_queued(self):
        """Where the queued tasks are."""
        for w in self.workers:
            for task in w.ring():
                self.places[task] = f"ring {w.index}"
            self.places[int(w.value["lifo"])] = f"LIFO {w.index}"
            for batch in w.overflow():
                self.find_queued_in(batch, f"overflow {w.index}")
            self.find_queued_in(w.value["inbox"], f"inbox {w.index}")
            self.find_queued_in(w.value["bound"], f"bound {w.index}")
        self.find_queued_in(self.value["injector"], "injector")
        self.find_queued_in(self.value["urgent"], "urgent lane")

    def find_queued_in(self, chain, place):
        task, left = int(chain["head"]), int(chain["len"])
        while task and left > 0:
            self.places[task] = place
            task, left = self.task_layout.read(task)["next"], left - 1

    def slabs(self):
        slab, head, seen = int(self.value["slabs"]["first"]), self["VOLT__SLAB_HEAD"], set()
        while slab:
            s = self.slab_layout.read(slab)
            if slab in seen or not s["slot_size"] or not s["carved"] <= s["cap"]:
                raise gdb.GdbError(f"volt: slab {slab:#x} has been overwritten")
            if (s["bytes"] - head) // s["slot_size"] != s["cap"]:
                raise differs(f"slab {slab:#x} holds another number of slots")
            yield slab + head, s
            seen.add(slab)
            slab = s["all_next"]

    def tasks(self):
        """All, if there are as many as the counters say; each thread may be about to count one."""
        tasks = list(self.walk())
        found, alive = sum(not t.has("COMPLETE") for t in tasks), self.n_alive()
        if abs(found - alive) > len(gdb.selected_inferior().threads()):
            raise differs(f"{found} tasks found, {alive} are alive")
        return tasks

    def n_alive(self):
        n = int(self.value["injector"]["spawned"]) - int(self.value["n_destroyed_outside"])
        n += sum(int(w.value["inbox"]["spawned"]) for w in self.workers)
        return n + sum(int(w.value["spawned"]) - int(w.value["completed"]) for w in self.workers)

    def walk(self):
        for first, slab in self.slabs():
            for i in range(slab["carved"]):
                address = first + shuffle(slab, i) * slab["slot_size"]
                raw = self.task_layout.read(address)
                if raw["word"] >= self["VOLT__REF"]:
                    yield Task(self, address, raw, slab["slot_size"], f"{slab['serial']}.{i}")

    def find(self, address):
        """The living task whose slot, or whose state outside of it, this address is in; or None."""
        for first, slab in self.slabs():
            place = (address - first) // slab["slot_size"]
            i = shuffle(slab, place)
            if place >= 0 and i < slab["carved"]:
                at = first + place * slab["slot_size"]
                raw = self.task_layout.read(at)
                is_alive = raw["word"] >= self["VOLT__REF"]
                name = f"{slab['serial']}.{i}"
                return Task(self, at, raw, slab["slot_size"], name) if is_alive else None
        return next((t for t in self.walk() if t.state_address() == address), None)

    def until(self, tick):
        """Seconds from the last look at the clock."""
        return (tick * self["VOLT_TICK_NS"] - self.ns) / 1e9

    def title(self):
        v = self.value
        is_closed = ", shutting down" if int(v["is_closed"]) else ""
        return (
            f"runtime {self.address:#x}: {len(self.workers)} of {int(v['n_workers'])} workers"
            f" started, {int(v['injector']['len'])} tasks in the injector{self.pool()}{is_closed}"
        )

    def pool(self):
        """Nothing while it is not used, or the program has no threads."""
        if not has_field(self.value.type, "pool") or not int(self.value["pool"]["close"]):
            return ""
        p = self.value["pool"]
        words = ("threads", "idle", "queued", "jobs")
        return ", pool: " + ", ".join(f"{word} {int(p['n_' + word])}" for word in words)


class Worker:
    def __init__(self, rt, value, threads):
        self.rt, self.value = rt, value
        self.index = int(value["index"])
        self.thread = threads.get(int(value.address))
        # its last look at the clock
        self.ns = int(value["last_event_poll"]) - int(rt.value["epoch"])
        self.task = int(value["cx"]["task_"])  # also after its poll

    def is_parked(self):
        words = self.rt.value["idle"]["parked"]
        bits = words.type.target().sizeof * 8
        return int(words[self.index // bits]) >> self.index % bits & 1 != 0

    def ring(self):
        """The tasks in it, the next one first."""
        ring = self.value["ring"]
        cap = ring["slot"].type.range()[1] + 1
        mask = (1 << self.rt["VOLT_RING_INDEX_BITS"]) - 1
        head = int(ring["head"]) >> self.rt["VOLT_RING_DISTANCE_BITS"]
        n = (int(ring["tail"]) - head) & mask
        if n > cap:
            raise differs(f"{n} tasks in a ring of {cap}: VOLT_RING_DISTANCE_BITS")
        claimed = int(ring["next"])
        n_claimed = (int(ring["claimed"]) - claimed) & mask
        slots = [*range(claimed, claimed + n_claimed), *range(head, head + n)]
        return [int(ring["slot"][i % cap]) for i in slots]

    def overflow(self):
        """The batches in it, the oldest one first."""
        overflow = self.value["overflow"]
        cap = overflow["batch"].type.range()[1] + 1
        oldest, n = int(overflow["oldest"]), int(overflow["n"])
        return [overflow["batch"][(oldest + i) % cap] for i in range(n)]

    def polls(self, address):
        """This task, as far as can be told."""
        return self.task == address and not self.is_parked() and not int(self.value["is_searching"])

    def check_clock(self):
        """While it runs or sleeps, its wheel tells of its last look at the clock as well; that of a
        stuck worker is turned further by its peers."""
        if self.state() not in ("asleep", "running"):
            return
        if int(self.value["ms"]) != self.ns // 1000000:
            raise differs(f"worker {self.index} is at {int(self.value['ms'])} ms, not {self.ns} ns")
        tick, elapsed = self.ns // self.rt["VOLT_TICK_NS"], int(self.value["wheel"]["elapsed"])
        if elapsed < tick or (elapsed > tick and self.state() == "asleep"):
            raise differs(f"worker {self.index} is at tick {elapsed}, not {tick}: VOLT_TICK_NS")

    def tickets(self):
        """How many threads hold or await the carrier lock: 0 while it is handed to none."""
        return (int(self.value["carrier_ticket"]) - int(self.value["carrier_serving"])) & 0xFFFFFFFF

    def is_blocked(self):
        return int(self.value["is_blocked"]) != 0

    def running(self):
        """The task that it polls, or None."""
        task = self.rt.find(self.task)
        return task if task and task.has("RUNNING") and self.polls(self.task) else None

    def state(self):
        if self.is_blocked():
            return "blocked"
        if self.tickets() == 0:
            return "handed off"
        if self.is_parked():
            return "asleep"
        if int(self.value["is_searching"]):
            return "searching"
        return "running" if self.running() else "awake"

    def at(self, task):
        """Debug builds know the last await that was reached, others that of the last wait."""
        at = int(self.value["cx"]["at_"])
        return self.rt.site[at] if at else task.site()

    def next_timer(self):
        """The tick of the next timer, or None. It stands in the first slot of one of the levels."""
        wheel = self.value["wheel"]
        due = []
        for level in range(wheel["occupied"].type.range()[1] + 1):
            slots = wheel["slot"][level]
            n = slots.type.range()[1] + 1
            bits = n.bit_length() - 1
            pos = int(wheel["elapsed"]) >> level * bits
            used_slots = int(wheel["occupied"][level])
            turn = (i % n for i in range(pos, pos + n))
            first = next((i for i in turn if used_slots >> i & 1), None)
            if first is not None:
                due += self.keys(slots[first])
        return min(due, default=None)

    @staticmethod
    def keys(head):
        """Of the nodes of a ring; of very long ones, of the first."""
        node, keys = head, []
        while len(keys) < 10000:
            keys.append(int(node["key_"]["tick_"]))
            node = node["next_"]
            if node == head or not int(node):
                break
        return keys

    def carrier(self):
        if not self.thread:
            return None
        of_whom = "" if int(self.value["is_own_thread"]) else " of the pool"
        return f"{self.thread.num} (LWP {self.thread.ptid[1]}){of_whom}"

    def row(self):
        v, rt, due, task = self.value, self.rt, self.next_timer(), self.running()
        stats = v["stats"]
        return {
            "worker": self.index,
            "thread": self.carrier(),
            "state": self.state(),
            "ring": len(self.ring()),
            "lifo": pointer(int(v["lifo"])),
            "overflow": int(v["overflow"]["len"]),
            "inbox": int(v["inbox"]["len"]),
            "timer_s": None if due is None else rt.until(due),
            "task": pointer(task.address) if task else None,
            "at": self.at(task) if task else None,
            "polls": int(stats["polls"]) + int(v["countdown_from"]) - int(v["countdown"]),
            "steals": int(stats["steals"]),
            "parks": int(stats["parks"]),
        }


def object_at(address, type_name):
    return gdb.Value(address).cast(gdb.lookup_type(type_name).pointer()).dereference()


def pointer(address):
    return f"{address:#x}" if address else None


def shuffle(slab, i):
    """volt__slab_shuffle: where the slot lies that is used as the i-th, and the other way round."""
    return i * 9 % 16 if 0 <= i < 16 <= slab["cap"] else i


class Task:
    def __init__(self, rt, address, raw, slot_size, id_):
        self.rt, self.address, self.raw, self.slot_size, self.id = rt, address, raw, slot_size, id_
        flags = ("RUNNING", "NOTIFIED", "COMPLETE", "CANCELLED", "ROUTED", "HAS_EXTRA")
        known = sum(rt["VOLT__" + name] for name in flags)
        if raw["word"] & (rt["VOLT__REF"] - 1) & ~known:
            raise differs(f"task {address:#x} has the word {raw['word']:#x}")

    def has(self, flag):
        return self.raw["word"] & self.rt["VOLT__" + flag] != 0

    def has_kind(self, flag):
        return self.raw["flags"] & self.rt["VOLT__" + flag] != 0

    def is_waiting(self):
        return not (self.has("RUNNING") or self.has("NOTIFIED") or self.has("COMPLETE"))

    def has_waited(self):
        """Before its first wait, what the task knows of waits is that of another one."""
        is_other = self.raw["wait_site"] != self.raw["spawn_site"]
        return is_other and "\t" not in self.rt.site[self.raw["wait_site"]]

    def name(self):
        """A spawn says "file:line", a tab and the function; volt_name puts a name in its place."""
        return self.rt.site[self.raw["spawn_site"]].partition("\t")[2] or self.rt.site[
            self.raw["spawn_site"]
        ]

    def spawned_at(self):
        site, tab, _ = self.rt.site[self.raw["spawn_site"]].partition("\t")
        return site if tab else None

    def state(self):
        if self.has("COMPLETE"):
            return "ended, held"
        return self.doing() + (", cancelled" if self.has("CANCELLED") else "")

    def doing(self):
        if self.has("RUNNING"):
            on = [str(w.index) for w in self.rt.workers if w.polls(self.address)]
            return "running" + (" on " + " or ".join(on) if on else " in place")
        if self.has("NOTIFIED"):
            if self.address in self.rt.places:
                return "queued on " + self.rt.places[self.address]
            return "queued" if self.has_waited() else "created"
        return "waiting"

    # ---- its frames, while it does not run

    def state_address(self):
        state = self.address + self.rt.task_layout.size
        if not self.has_kind("EXTERNAL"):
            return state
        size = self.rt.value.type.pointer().sizeof
        return int.from_bytes(gdb.selected_inferior().read_memory(state, size), "little")

    def frames(self):
        """From its function to the innermost one that it awaits, each as a dict."""
        if self.has("RUNNING") or self.has("COMPLETE") or not self.has_waited():
            return []
        frames, at = [], self.state_address()
        while at and len(frames) < MOST_FRAMES:
            frame = self.rt.frame_layout.read(at)
            frames.append({"address": at, **frame})
            at = frame["source_"] if frame["kind_"] == self.rt["VOLT__CHILD"] else 0
        return frames

    def site(self):
        return self.rt.site[self.raw["wait_site"]] if self.has_waited() else None

    def at(self, frames):
        """The site, which is the innermost frame's, and the lines of those outside of it."""
        if not self.has_waited():
            return None
        lines = [f["resume_line_"] for f in reversed(frames)]
        if not lines or not self.site().endswith(f":{lines[0]}"):
            lines = lines[:1]
        return " < ".join([self.site(), *map(str, lines[1:])])

    # ---- what it waits for

    def what(self, frames):
        if self.has("COMPLETE"):
            value = self.raw["result"]
            return f"result {value - (1 << 64) if value >> 63 else value}"
        if not self.is_waiting():
            return None
        if not self.raw["wait"] or not frames:
            return "waker" if self.has_kind("GAVE_WAKER") else "by hand"
        inner = frames[-1]
        if inner["kind_"] == self.rt["VOLT__CHILD_ARRAY"]:
            return "array, one: " + self.leaf(None)
        if inner["kind_"] == self.rt["VOLT__ARMS"]:
            modes = {self.rt[key]: name for key, name in MODES.items()}
            mode = modes.get(self.counter(inner, "VOLT__ARMS_MODE"))
            n = self.counter(inner, "VOLT__ARMS_N")
            return f"{mode} of {n} arms, one: {self.leaf(None)}"
        return self.leaf(inner)

    def counter(self, frame, which):
        """One of the small numbers that a frame with arms packs into its key."""
        return frame["key_"] >> 8 * self.rt[which] & 255

    def leaf(self, frame):
        """Without the frame of an arm, what the arm waits on is not known."""
        kind, argument = self.raw["wait"] >> 24, self.raw["wait"] & 0xFFFFFF
        for name, text in LEAVES.items():
            if self.rt.constants[name] == kind:
                text = text if frame or "{fd}" in text else re.match(r"\w+", text)[0]
                return text.format(fd=argument, **self.objects(name, frame))
        raise differs(f"task {self.address:#x} waits for something of kind {kind}")

    def objects(self, name, frame):
        """What a frame waits on, in the words of LEAVES."""
        if not frame:
            return {}
        source = frame["source_"]
        if name == "VOLT__LEAF_JOB":
            state = int(object_at(source, "struct volt_job")["state_"])
            return {"job": next(text for key, text in JOBS.items() if self.rt[key] == state)}
        if name == "VOLT__LEAF_NAME":
            host = object_at(source, "struct volt__query")["host"]
            return {"host": host.string("utf-8", "replace")}
        return {"source": pointer(source)}

    def left(self, frames):
        """Seconds until its timer is due, if that is what it waits for; or None."""
        is_timer = self.raw["wait"] >> 24 == self.rt["VOLT__LEAF_TIMER"]
        if not (self.is_waiting() and frames and is_timer):
            return None
        inner = frames[-1]
        is_linked = inner["state_"] & 15 == self.rt["VOLT__LINKED"]
        is_leaf = inner["kind_"] == self.rt["VOLT__LEAF_TIMER"]
        return self.rt.until(inner["key_"]) if is_linked and is_leaf else None

    def since(self):
        """Seconds that it has waited, or None."""
        if not self.is_waiting() or not self.has_waited():
            return None
        shift = 1 if self.rt.is_traced else 0  # the lowest bit then tells wake-ups from waits
        ms = ((self.rt.ms << shift) - self.raw["wait_ms"]) & 0xFFFFFFFF
        return (ms >> shift) / 1e3

    def age(self):
        """Seconds since its spawn, which may have come after the last look at the clock."""
        ms = (self.rt.ms - self.raw["spawn_ms"]) & 0xFFFFFFFF
        return ms / 1e3 if ms < 1 << 31 else 0.0

    def group(self):
        """The group that it is a member of, or 0."""
        if not self.has_kind("HAS_GROUP_LINK"):
            return 0
        link = self.rt.link_layout  # at the end of the slot
        return link.read(self.address + self.slot_size - link.size)["group"]

    def tag(self):
        """What VOLT_SPAWN_WITH gave it, or its spawner; or None."""
        if not self.has("HAS_EXTRA"):
            return None
        end = self.address + self.slot_size - self.rt.link_layout.size
        return self.rt.extra_layout.read(end - self.rt["VOLT__EXTRA_SIZE"])["tag"] or None

    def row(self):
        frames = self.frames()
        return {
            "task": pointer(self.address),
            "id": self.id,
            "name": self.name(),
            "tag": self.tag(),
            "state": self.state(),
            "age_s": self.age(),
            "since_s": self.since(),
            "left_s": self.left(frames),
            "waits_for": self.what(frames),
            "at": self.at(frames),
            "function": None if self.has("COMPLETE") else self.rt.function[self.raw["fn"]],
            "spawned_at": self.spawned_at(),
            "refs": self.raw["word"] // self.rt["VOLT__REF"],
            "nodes": self.raw["n_armed"],
            "group": pointer(self.group()),
        }


# ---- the commands


def cell(value):
    if value is None:
        return "-"
    return f"{value:.1f} s" if isinstance(value, float) else str(value)


def title(name):
    return name.removesuffix("_s").replace("_", " ").upper()


def table(rows):
    """Columns are two blanks apart; no cell is empty or has two."""
    if not rows:
        return ""
    lines = [[title(name) for name in rows[0]], *([cell(c) for c in r.values()] for r in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() + "\n" for line in lines
    )


class Volt(gdb.Command):
    """Tasks and workers of programs that use volt.h: volt tasks, workers, task, use."""

    def __init__(self):
        super().__init__("volt", gdb.COMMAND_STATUS, prefix=True)


class Tasks(gdb.Command):
    """List all tasks of all runtimes: volt tasks [json]"""

    def __init__(self):
        super().__init__("volt tasks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if argument.lower() not in ("", "json"):
            raise gdb.GdbError("volt tasks [json]")
        with selection_kept():
            if argument:
                rows = [
                    {"runtime": pointer(rt.address), **t.row()}
                    for rt in runtimes()
                    for t in rt.tasks()
                ]
                gdb.write(json.dumps(rows, indent=1) + "\n")
                return
            for rt in runtimes():
                rows = [t.row() for t in rt.tasks()]
                gdb.write(f"{rt.title()}, {len(rows)} tasks\n{table(rows)}")


class Workers(gdb.Command):
    """List the workers of all runtimes: volt workers"""

    def __init__(self):
        super().__init__("volt workers", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        with selection_kept():
            for rt in runtimes():
                gdb.write(f"{rt.title()}\n{table([w.row() for w in rt.workers])}")


class OneTask(gdb.Command):
    """Show a task and the frames inside: volt task ADDRESS"""

    def __init__(self):
        super().__init__("volt task", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("volt task ADDRESS")
        address = value_of(argument)
        with selection_kept():
            for rt in runtimes():
                task = rt.find(address)
                if task:
                    self.show(task)
                    return
        raise gdb.GdbError(f"volt: no task at {address:#x}")

    @staticmethod
    def show(task):
        for name, value in task.row().items():
            gdb.write(f"{title(name).lower():10}  {cell(value)}\n")
        gdb.write(f"state at    {task.state_address():#x}\n")
        for f in reversed(task.frames()):
            gdb.write(f"frame       {f['address']:#x}, awaits at line {f['resume_line_']}\n")


class Use(gdb.Command):
    """Look at this runtime, too: volt use EXPRESSION; without one: forget those named so"""

    def __init__(self):
        super().__init__("volt use", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if not argument:
            used.clear()
            return
        address = gdb.Value(value_of(argument))
        used.append(address.cast(gdb.lookup_type("struct volt_rt").pointer()))


def value_of(expression):
    """Of an expression that changes nothing: no assignment, no call."""
    if re.search(r"\+\+|--|=", re.sub(r"[=!]=|(?<!<)<=|(?<!>)>=", "", expression)):
        raise gdb.GdbError("volt: the expression must not change anything")
    try:
        text = gdb.execute(
            f"with may-call-functions off -- output/d (unsigned long)({expression})", to_string=True
        )
        return int(text)
    except (gdb.error, ValueError) as e:
        raise gdb.GdbError(f"volt: {expression}: {e}") from None


for command in (Volt, Tasks, Workers, OneTask, Use):
    command()
