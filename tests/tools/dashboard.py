#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Checks the output of examples/15_dashboard.c, and its page in a browser.

    tests/tools/dashboard.py reports EVENTS TRACE all|some
        reads a recorded stream of events and a trace, strictly; `some`: not all tasks fit
    tests/tools/dashboard.py slow PORT
        files and streams that are not read: their number is limited, and each is dropped
    tests/tools/dashboard.py browser PROGRAM DIRECTORY
        runs the program and headless Chromium, looks at the page while it lives, and keeps
        pictures of it in the directory
"""
import base64
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds, for any step


def fail(what):
    sys.exit("dashboard: failed: " + what)


def check(is_good, what):
    if not is_good:
        fail(what)
    print("dashboard: " + what)


# ---- output

def refuse(what):
    raise ValueError(what)


def unique(pairs):
    if len(dict(pairs)) != len(pairs):
        refuse("a name twice")
    return dict(pairs)


def strictly(text):
    return json.loads(text, parse_constant=refuse, parse_float=refuse, object_pairs_hook=unique)


def check_event(event, was):
    numbers = [event["up_us"], event["oldest_ns"], event["longest_ns"], *event["sum"].values(),
               *event["poll"], *event["wait"], *[n for w in event["workers"] for n in w.values()]]
    check_quietly(all(isinstance(n, int) and n >= 0 for n in numbers), "a number")
    check_quietly(len(event["poll"]) == len(event["wait"]) == 48, "a histogram")
    check_quietly(len(event["workers"]) == len(event["dump"]["workers"]) > 0, "the workers")
    for task in event["dump"]["tasks"]:
        check_quietly({"id", "name", "state", "age_ms"} <= set(task), "a task")
        if task["state"] == "waiting":
            check_quietly({"at", "for", "since_ms"} <= set(task), "a wait")
    for name in ["spawned", "completed", "parks"]:
        check_quietly(event["sum"][name] >= was["sum"][name], name)
    check_quietly(event["sum"]["polls"] > was["sum"]["polls"] or event is was, "polls")
    check_quietly(sum(event["poll"]) > sum(was["poll"]) or event is was, "new polls")
    check_quietly(event["up_us"] > was["up_us"] or event is was, "the time")
    ages = [i for name in ["poll", "wait"] for i, n in enumerate(event[name]) if n]
    check_quietly(2 ** (max(ages) - 1) < (event["up_us"] + 1000000) * 1000,
                  "a poll or a wait of 2^%d ns, longer than the program runs" % (max(ages) - 1))


def check_quietly(is_good, what):
    if not is_good:
        fail(what)


def reports(events, trace, how_many):
    with open(events, encoding="utf-8") as file:
        texts = file.read().split("\n\n")[:-1]
    check_quietly(all(t.startswith("data: ") and "\n" not in t for t in texts), "an event")
    got = [strictly(t[len("data: "):]) for t in texts]
    for event, was in zip(got, got[:1] + got):
        check_event(event, was)
    check(len(got) >= 3, "events in strict JSON, 3 at least; counters grow")
    names = {t["name"] for t in got[-1]["dump"]["tasks"]}
    alive = got[-1]["sum"]["spawned"] - got[-1]["sum"]["completed"]
    if how_many == "all":
        check({"sleeper", "echo client", "echo server", "http client"} <= names, "known tasks")
        check(abs(len(got[-1]["dump"]["tasks"]) - alive) < 1500, "all tasks")
    else:
        n = len(got[-1]["dump"]["tasks"])
        check(500 < n < alive - 1000, "some of many tasks")
        check(max(len(t) for t in texts) < 256 << 10, "no event beyond its limit")
    with open(trace, encoding="utf-8") as file:
        trace = json.load(file, parse_constant=refuse)["traceEvents"]
    check({"echo client", "echo server"} <= {e.get("name") for e in trace}, "their polls, traced")


# ---- answers that are not read
def ask(port, path):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(LIMIT)
    s.connect(("127.0.0.1", port))
    s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path)
    return s, s.recv(12, socket.MSG_WAITALL)[9:].decode()


# A client that has closed keeps its place until the next event.
def place(port, path, what):
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        s, status = ask(port, path)
        if status == "200":
            return s
        s.close()
    return fail(what)


def slow(port):
    unread = [place(port, b"/trace.json", "two files") for _ in range(2)]
    check(ask(port, b"/dump.txt")[1] == "503", "two files at a time")
    unread += [place(port, b"/events", "eight streams") for _ in range(8)]
    check(ask(port, b"/events")[1] == "503", "eight streams at a time")
    place(port, b"/dump.txt", "an unread file keeps its place").close()
    place(port, b"/events", "an unread stream keeps its place").close()
    check(len(unread) == 10, "unread answers are dropped")


# ---- a browser

def not_yet(_):
    return None


class Browser:
    def __init__(self, directory):
        to_read, self.to = os.pipe()
        self.come, from_write = os.pipe()
        here = {3: to_read, 4: from_write}

        def place():  # --remote-debugging-pipe uses descriptors 3 and 4
            high = {to: os.dup2(fd, 100 + to) for to, fd in here.items()}
            for to, fd in high.items():
                os.dup2(fd, to)

        flags = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update",
                 "--user-data-dir=" + directory]
        if os.getuid() == 0:
            flags.append("--no-sandbox")
        self.log = open(os.path.join(directory, "log"), "w+")
        self.process = subprocess.Popen(["chromium"] + flags + ["about:blank"], preexec_fn=place,
                                        close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        os.close(to_read)
        os.close(from_write)
        self.pending, self.n, self.session, self.complaints = b"", 0, None, []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = [p for p in pages if p["type"] == "page"][0]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")

    def message(self, until):
        while b"\0" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.come], [], [], left)[0]:
                fail("the browser does not answer")
            some = os.read(self.come, 1 << 20)
            if not some:
                self.log.seek(0)
                fail("the browser has ended: " + self.log.read()[-2000:])
            self.pending += some
        one, self.pending = self.pending.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, if_left=fail, **parameters):
        """if_left: takes the error of a script whose page was left in the meantime."""
        self.n += 1
        ask = {"id": self.n, "method": method, "params": parameters}
        if self.session:
            ask["sessionId"] = self.session
        os.write(self.to, json.dumps(ask).encode() + b"\0")
        until = time.monotonic() + LIMIT
        while True:
            m = self.message(until)
            self.listen(m)
            if m.get("id") == self.n:
                if "error" in m:
                    said = m["error"]["message"]
                    return (if_left if "navigated" in said else fail)(method + ": " + said)
                return m["result"]

    def listen(self, m):
        p = m.get("params", {})
        if m.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"])[:600])
        if m.get("method") == "Runtime.consoleAPICalled" and p["type"] in ["error", "warning"]:
            self.complaints.append(json.dumps(p["args"])[:600])
        # rendering: a warning that the test reads canvases slowly
        if m.get("method") == "Log.entryAdded" and p["entry"]["source"] != "rendering" and \
                p["entry"]["level"] in ["error", "warning"]:
            self.complaints.append(json.dumps(p["entry"])[:600])

    def value(self, script, if_left=fail):
        r = self.call("Runtime.evaluate", if_left, expression=script, awaitPromise=True,
                      returnByValue=True)
        if r is None:
            return None
        if "exceptionDetails" in r:
            fail(script + ": " + json.dumps(r["exceptionDetails"])[:600])
        return r["result"].get("value")

    def wait(self, what, script):
        until = time.monotonic() + LIMIT
        while not self.value(script, not_yet):
            if time.monotonic() > until:
                fail("never: " + what + " " + "; ".join(self.complaints))
            self.value("new Promise(done => setTimeout(done, 50))", not_yet)

    def look(self, width, height, scheme, is_phone):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                               "scale": 1})["data"]
        with open(file, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        """Ends all processes of the browser, so that none writes to its directory from here on."""
        self.process.terminate()
        self.process.wait()
        try:
            for _ in range(200):  # a process that nothing waits for remains in the group
                os.killpg(self.process.pid, signal.SIGKILL)
                time.sleep(0.01)
        except ProcessLookupError:
            pass
        self.log.close()


# Pictures by name: width, height, phone.
LOOKS = {"desktop": (1440, 900, False), "phone": (360, 780, True)}

# Before the scripts of the page run: reports violations of its policy, and puts a task first in the
# stream whose name would be markup if the page interpreted it.
SPY = """
addEventListener('securitypolicyviolation', e => console.error('policy', e.blockedURI));
window.EventSource = class extends EventSource {
  set onmessage(f) {
    super.onmessage = e => {
      const event = JSON.parse(e.data);
      if (!window.isPlain) event.dump.tasks.unshift({ id: '0.0', state: 'waiting',
        for: '<b>never</b>', age_ms: 1e9, since_ms: 1e9, at: '<script>window.hurt = 1</script>',
        name: '<img src=x onerror="window.hurt = 1">' });
      f({ data: JSON.stringify(event) });
    };
  }
};
"""

# Text whose contrast with its background is less than WCAG requires (AA).
CONTRAST = """
(() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const hasText = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!hasText || !e.getClientRects().length || e.closest('.unseen, noscript')) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(e.textContent.slice(0, 20) + ' ' + ratio.toFixed(1));
  }
  return bad.join(', ');
})()
"""
UNNAMED = """
[...document.querySelectorAll('canvas, button, input, select, a')].filter(e =>
  !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label'))).length
"""
BROKEN = "/NaN|undefined|Infinity|null/.test(document.body.textContent)"
ROWS = "document.querySelectorAll('#tasks tr').length"
TILES = "[...document.querySelectorAll('.tile b')].map(e => e.textContent).join(' ')"


def column(n):
    return "[...document.querySelectorAll('#tasks tr')].map(r => r.children[%d].textContent)" % n


def click(browser, element):
    browser.value("document.querySelector(%s).click()" % json.dumps(element))


def type_in(browser, element, text):
    browser.value("(() => { const e = document.querySelector(%s); e.value = %s;"
                  "e.dispatchEvent(new Event('input', { bubbles: true })); })()"
                  % (json.dumps(element), json.dumps(text)))


def look_at_tasks(b):
    b.wait("rows of tasks", ROWS + " >= 5")
    names = b.value(column(0))
    check({"sleeper", "echo client", "echo server"} <= set(names), "the tasks are there, by name")
    b.wait("a count of sleepers", column(1) + ".some(n => Number(n) > 100)")
    check(b.value("document.querySelector('#tasks').textContent.includes('<img src=x onerror=')"
                  "&& !document.querySelector('#tasks img, #tasks b, #tasks script')"
                  "&& window.hurt === undefined"), "a name that looks like markup stays text")
    click(b, "#group")
    b.wait("each task by itself", ROWS + " === 200")
    check(True, "each task by itself, 200 of them")
    type_in(b, "#filter", "ECHO CLI")
    b.wait("the filter", ROWS + " === 24")
    check(set(b.value(column(0))) == {"echo client"}, "the filter leaves 24 echo clients")
    type_in(b, "#filter", "no such task")
    b.wait("no rows", ROWS + " === 0 && document.querySelector('#none').checkVisibility()")
    check(True, "a filter without a match shows a message")
    type_in(b, "#filter", "")
    click(b, "#group")
    click(b, "#columns th:first-child button")
    b.wait("the order", "document.querySelector('#columns th').ariaSort === 'ascending'")
    names = b.value(column(0))
    check(names == sorted(names), "sorted by name")
    click(b, "#columns th:first-child button")
    names = b.value(column(0))
    check(names == sorted(names, reverse=True), "sorted in reverse")
    click(b, "#columns th:nth-child(5) button")


def look_at_values(b):
    polls = ".tile:nth-child(2) "
    for element in [polls + "b", polls + "footer", ".tile:nth-child(6) b", "#workers", "#up",
                    "#poll-quantiles", "#tasks"]:
        what = "document.querySelector('%s').textContent" % element
        old = b.value(what)
        b.wait("a change of " + what, "%s !== %s" % (what, json.dumps(old)))
    check(True, "the values change")
    inked = ("[...document.querySelectorAll('canvas')].filter(c => c.checkVisibility())"
             ".every(c => c.getContext('2d').getImageData(0, 0, c.width, c.height)"
             ".data.some(v => v))")
    b.wait("all canvases", inked)
    check(True, "every canvas is drawn")
    check(not b.value(BROKEN), "no broken numbers")
    check(b.value(UNNAMED) == 0, "each control and canvas has a name")


def look_at_pause(b):
    click(b, "#pause")
    old = b.value(TILES)
    heard = b.value("heard")
    b.wait("two more events", "heard > %f + 900" % heard)
    check(b.value(TILES) == old, "a pause holds the page")
    click(b, "#pause")
    b.wait("the end of the pause", "%s !== %s" % (TILES, json.dumps(old)))


def look_at_looks(b, directory):
    b.value("window.isPlain = true")
    for name, (width, height, is_phone) in LOOKS.items():
        for scheme in ["light", "dark"]:
            b.look(width, height, scheme, is_phone)
            old = b.value("heard")
            b.wait("a drawing in these colours", "heard > %f" % old)
            check(b.value("document.documentElement.scrollWidth") <= width,
                  "%s, %s: nothing sticks out" % (name, scheme))
            bad = b.value(CONTRAST)
            check(not bad, "%s, %s: contrast %s" % (name, scheme, bad or "at least 4.5"))
            b.picture(os.path.join(directory, "%s-%s.png" % (name, scheme)))


def browser(program, directory):
    os.makedirs(directory, exist_ok=True)
    server = subprocess.Popen([program, "0", "0"], stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as place:
        b = None
        try:
            b = Browser(place)
            url = server.stdout.readline().strip()
            b.call("Page.addScriptToEvaluateOnNewDocument", source=SPY)
            b.look(*LOOKS["desktop"][:2], "light", False)
            b.call("Page.navigate", url=url)
            b.wait("the stream", "document.body && document.body.className === 'live'")
            look_at_tasks(b)
            look_at_values(b)
            look_at_pause(b)
            files = "Promise.all(['/trace.json', '/dump.txt'].map(f => fetch(f)" \
                    ".then(r => r.text()))).then(t => JSON.parse(t[0]).traceEvents.length > 100 " \
                    "&& t[1].includes('echo client'))"
            check(b.value(files), "the page links to both files")
            b.wait("half a minute of lines", "past.length > 60")
            look_at_looks(b, directory)
            check(not b.complaints, "no complaint in the console " + "; ".join(b.complaints))
            server.terminate()
            check(server.wait(LIMIT) == 0, "the server ends in order")
            b.wait("the loss", "document.querySelector('#status-text').textContent "
                               "=== 'no connection'")
            check(b.value("document.body.className") == "lost stale", "the loss is shown")
            server = subprocess.Popen([program, url.split(":")[2].strip("/"), "0"],
                                      stdout=subprocess.DEVNULL)
            b.wait("a new start", "document.body.className === 'live' && past.length > 1 "
                                  "&& past.every((s, i) => i === 0 || s.us > past[i - 1].us)")
            check(not b.value(BROKEN), "the page goes on with a new start")
        finally:
            if b:
                b.close()
            server.kill()
            server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["reports"] and len(sys.argv) == 5:
        reports(*sys.argv[2:])
    elif sys.argv[1:2] == ["slow"] and len(sys.argv) == 3:
        slow(int(sys.argv[2]))
    elif sys.argv[1:2] == ["browser"] and len(sys.argv) == 4:
        browser(*sys.argv[2:])
    else:
        sys.exit(__doc__)
