#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Boots an image under qemu-system and checks it from outside and through its console.

    boot.py NAME DIR TOOLS QEMU...

DIR has the image: kernel, initramfs.gz, and the programs echo_server and supervisor with their
object files. TOOLS is the prefix of the binutils. QEMU... is the command of the machine, in which
NET stands for the options of its network. Prints a line for each claim, a row for the table of
README.md, and the sum.
"""
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

BOOT_SECONDS = 1200  # limits, not expectations: qemu emulates, on a machine that may be busy
STEP_SECONDS = 300
IDLE_SECONDS = 10
PIDFD = (5, 3)  # before this kernel, volt_process_wait asks for the end of a child every 10 ms
CLIENTS = 20
LIMIT_SECONDS = 5  # of the server, for a client that is silent
MESSAGE = bytes(range(256)) * 16
NET = "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:7000"


def fail(text):
    raise SystemExit(f"image {NAME}: {text}")


class Stream:
    """What comes from a descriptor, up to a deadline."""

    def __init__(self, fd):
        self.fd = fd
        self.text = ""
        self.is_open = True

    def more(self, deadline):
        """Waits for more text. Gives False after the deadline or the end of the stream."""
        wait = deadline - time.monotonic()
        if wait <= 0 or not self.is_open or not select.select([self.fd], [], [], wait)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except ConnectionResetError:
            data = b""
        self.is_open = bool(data)
        self.text += data.decode(errors="replace").replace("\r", "")
        return self.is_open

    def find(self, pattern, start, seconds):
        """The first match of a pattern behind `start`, of which the stream waits for the whole."""
        deadline = time.monotonic() + seconds
        while True:
            # Line by line, so that ^ and $ never match at the end of what has come so far.
            whole = self.text[:self.text.rfind("\n") + 1]
            match = re.compile(pattern, re.M).search(whole, start)
            if match:
                return match
            if not self.more(deadline):
                fail(f"no '{pattern}' came within {seconds} s:\n{self.text[-3000:]}")


class Guest:
    def __init__(self, command):
        ours, its = socket.socketpair()
        self.socket = ours
        command = [NET if part == "NET" else part for part in command]
        # The end of the machine, if this script should be killed.
        limit = ["timeout", "--foreground", "-k", "10", str(BOOT_SECONDS + 20 * STEP_SECONDS)]
        self.process = subprocess.Popen(
            limit + command + ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                               "-chardev", f"socket,id=console,fd={its.fileno()}",
                               "-serial", "chardev:console", "-monitor", "stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[its.fileno()])
        its.close()
        self.console = Stream(ours.fileno())
        self.monitor = Stream(self.process.stdout.fileno())

    def port(self):
        """The port of this machine that leads to port 7000 of the guest, chosen by the kernel."""
        self.process.stdin.write(b"info usernet\n")
        self.process.stdin.flush()
        row = r"TCP\[HOST_FORWARD\] +\d+ +127\.0\.0\.1 +(\d+) "
        return int(self.monitor.find(row, 0, STEP_SECONDS)[1])

    def now(self):
        """The place in the output of the console behind all that has come."""
        while self.console.more(time.monotonic() + 0.001):
            pass
        return len(self.console.text)

    def wait(self, pattern, start, seconds=STEP_SECONDS):
        return self.console.find(pattern, start, seconds)

    def run(self, line, seconds=STEP_SECONDS):
        """Runs a command in the guest, and gives its output, which is one line at most."""
        start = self.now()
        self.socket.sendall(line.encode() + b"\n")
        try:
            answer = self.wait(r"^@(\d+) (.*)$", start, seconds)
        except SystemExit as failure:  # does the command hang, or the console?
            self.socket.sendall(b"echo further\n")
            until = time.monotonic() + STEP_SECONDS
            while "further" not in self.console.text[start:] and self.console.more(until):
                pass
            fail(f"{failure}\n'{line}' and a further line gave:\n{self.console.text[start:]}")
        if answer[1] != "0":
            fail(f"'{line}' failed in the guest: {answer[0]}")
        return answer[2]

    def kill(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def receive(client):
    """What comes from the server, until it is as long as the message or the server closes."""
    got = b""
    while len(got) < len(MESSAGE):
        try:
            data = client.recv(65536)
        except (ConnectionResetError, TimeoutError):
            break
        if not data:
            break
        got += data
    return got


def echo(port, n):
    """Has n clients at a time, each of which gets all back that it sends. The server closes a
    connection on which nothing comes for 5 s; where this machine is too busy to be in time, the
    client connects again. Gives the number of connections."""
    n_connections = 0
    deadline = time.monotonic() + STEP_SECONDS
    while n > 0:
        clients = []
        for _ in range(n):
            clients.append((time.monotonic(), socket.create_connection(("127.0.0.1", port))))
            clients[-1][1].sendall(MESSAGE)
        n_connections += n
        n = 0
        for begun, client in clients:
            client.settimeout(STEP_SECONDS)
            got = receive(client)
            client.close()
            now = time.monotonic()
            if got != MESSAGE:
                n += 1
                if not MESSAGE.startswith(got) or now - begun < LIMIT_SECONDS or now > deadline:
                    fail(f"after {now - begun:.1f} s, {len(got)} bytes have come back")
    return n_connections


class Claims:
    """Prints and counts the claims that have held."""

    def __init__(self):
        self.n = 0

    def add(self, text):
        self.n += 1
        print(f"image {NAME}: {text}", flush=True)


def rest(guest, pids, seconds=0):
    """Waits until the processes are at rest, and then for some time. Gives the number of their
    threads, and how often these have woken up when the rest began and when it ended."""
    n, begin, n_at_end, end = (int(n) for n in guest.run(f"rest {seconds} {pids}").split())
    if n < len(pids.split()) or n != n_at_end:
        fail(f"{n} threads of the processes {pids} have become {n_at_end}")
    return n, begin, end


def check(guest, claims):
    """Checks the image from its start to its end, and gives what the table needs."""
    begun = time.monotonic()
    guest.wait(r"^@ready$", 0, BOOT_SECONDS)
    kernel = guest.run("uname -r")
    claims.add(f"Linux {kernel} boots, {time.monotonic() - begun:.0f} s after the start of qemu")
    logged = guest.wait(r"^echo : runs as process (\d+)$", 0)[1]
    guest.wait(r"^echo \| port 7000$", 0)
    port = guest.port()
    echo(port, CLIENTS)
    claims.add(f"it serves {CLIENTS} clients at a time")

    pids = guest.run("echo $(pidof supervisor) $(pidof echo_server)")
    supervisor, server = pids.split()
    if server != logged:
        fail(f"process {logged} is in the log, but the server is {server}")
    silent, names = pids, "supervisor and server"
    if tuple(map(int, re.findall(r"\d+", kernel)[:2])) < PIDFD:
        silent, names = server, "the server"
    n_threads, begin, end = rest(guest, silent, IDLE_SECONDS)
    if begin != end:
        fail(f"{end - begin} wake-ups while idle for {IDLE_SECONDS} s")
    claims.add(f"idle for {IDLE_SECONDS} s, no thread of {names} wakes up, of {n_threads}")
    if silent != pids:
        count = f"wake_ups {supervisor}"
        counts = guest.run(f"echo $({count}; sleep {IDLE_SECONDS}; {count})").split()
        grown = int(counts[3]) - int(counts[1])
        if grown == 0:
            fail("the supervisor is silent although it has no pidfd: PIDFD is not needed here")
        claims.add(f"without a pidfd, the supervisor wakes up {grown} times in {IDLE_SECONDS} s")
    memory = [guest.run(f"memory {pid}").split() for pid in (server, supervisor)]
    end = rest(guest, server)[2]
    echo(port, 1)
    grown = rest(guest, server)[1] - end
    if grown == 0:
        fail("serving a client was not counted as a wake-up")
    claims.add(f"one more client is {grown} wake-ups of the server")

    start = guest.now()
    guest.run(f"kill -KILL {server}")
    guest.wait(r"^echo : has ended: SIGKILL$", start)
    again = guest.wait(r"^echo : runs as process (\d+)$", start)
    guest.wait(r"^echo \| port 7000$", again.end())
    if again[1] == server or guest.run("pidof echo_server") != again[1]:
        fail(f"the server was process {server}, and is {again[1]}")
    claims.add("a killed server is started again")
    n_connections = echo(port, CLIENTS + 1)
    rest(guest, silent.replace(server, again[1]))
    claims.add("the new one serves, too, and comes to rest")
    n = guest.run(f"ls -l /proc/{supervisor}/fd | grep -c /dev/console")
    if n != "4":
        fail(f"{n} of the supervisor's descriptors are the console, not 0, 1, 2 and its own")
    claims.add("the supervisor logs by a description of its own, so the console stays blocking")

    start = guest.now()
    guest.socket.sendall(b"poweroff\n")
    n_served = int(guest.wait(r"^echo \| served (\d+) clients$", start)[1])
    if not CLIENTS + 1 <= n_served <= n_connections:
        fail(f"the server says that it has served {n_served} clients")
    stopped = guest.wait(r"^echo : was stopped: status 0$", start)
    if guest.wait("^The system is going down NOW!$", start).start() < stopped.start():
        fail("init was first to end the server")
    guest.wait("Power down$", start)
    status = guest.process.wait(STEP_SECONDS)
    if status:
        fail(f"qemu ended with status {status}")
    claims.add("at the end of the system the supervisor stops the server, which ends with status 0")
    return kernel, memory


def text_bytes(path):
    """The size of the code and constants of an object file or program."""
    rows = subprocess.run([TOOLS + "size", path], check=True, capture_output=True, text=True).stdout
    return int(rows.split("\n")[1].split()[0])


def kib(n):
    return f"{(n + 512) // 1024:,}"


def main():
    signal.signal(signal.SIGTERM, lambda *_: fail("the time is up"))
    claims = Claims()
    guest = Guest(QEMU)
    try:
        kernel, memory = check(guest, claims)
    finally:
        guest.kill()
    cells = [NAME, kernel, kib(os.path.getsize(f"{DIR}/kernel")),
             kib(os.path.getsize(f"{DIR}/initramfs.gz"))]
    for program in "echo_server", "supervisor":
        own, linked = text_bytes(f"{DIR}/{program}.o"), text_bytes(f"{DIR}/{program}")
        cells.append(f"{kib(own)}, {kib(linked)}")
    for rss, own in memory:
        cells.append(f"{rss}, {own}")
    print("| " + " | ".join(cells) + " |")
    print(f"image {NAME}: {claims.n} passed, 0 failed, 0 skipped")


NAME, DIR, TOOLS, *QEMU = sys.argv[1:]
main()
