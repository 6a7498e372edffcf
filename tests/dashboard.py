#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""What a browser makes of the page of examples/15_dashboard.c.

    tests/dashboard.py PROGRAM DIRECTORY

Runs the program and headless Chromium, looks at the page while it lives, and keeps pictures of it
in the directory. Chromium is driven through a pipe: JSON that ends with a zero byte.
"""
import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds that anything may take


def fail(what):
    sys.exit("dashboard: " + what)


def check(is_good, what):
    if not is_good:
        fail(what)
    print("dashboard: " + what)


class Browser:
    def __init__(self, directory):
        to_read, self.to = os.pipe()
        self.come, from_write = os.pipe()
        here = {3: to_read, 4: from_write}

        def place():  # descriptors 3 and 4 are what --remote-debugging-pipe uses
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
                                        stdout=self.log, stderr=self.log)
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

    def call(self, method, **parameters):
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
                    fail(method + ": " + m["error"]["message"])
                return m["result"]

    def listen(self, m):
        p = m.get("params", {})
        if m.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"])[:600])
        if m.get("method") == "Runtime.consoleAPICalled" and p["type"] in ["error", "warning"]:
            self.complaints.append(json.dumps(p["args"])[:600])
        if m.get("method") == "Log.entryAdded" and p["entry"]["level"] in ["error", "warning"]:
            self.complaints.append(json.dumps(p["entry"])[:600])

    def value(self, script):
        r = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                      returnByValue=True)
        if "exceptionDetails" in r:
            fail(script + ": " + json.dumps(r["exceptionDetails"])[:600])
        return r["result"].get("value")

    def wait(self, what, script):
        until = time.monotonic() + LIMIT
        while not self.value(script):
            if time.monotonic() > until:
                fail("never: " + what + " " + "; ".join(self.complaints))
            self.value("new Promise(done => setTimeout(done, 50))")

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
        self.process.terminate()
        self.process.wait()
        self.log.close()
