#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""The servers of examples/ and clients that misbehave: crowds, silence, floods, raw bytes.

    tests/tools/servers.py EXAMPLE PROGRAM ACCEPT_FAILS
        runs each claim about the example (03_echo, 06_http, 13_chat, 15_dashboard) with a server of
        its own, four at once; ACCEPT_FAILS: tests/tools/accept_fails.c as a shared object, or - for a
        program with sanitizers: nothing is preloaded, and it may be slow
"""
import concurrent.futures
import email.utils
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time

LIMIT = 40  # seconds, for any step; longer than every limit of a server
CLIENTS_MAX, DASHBOARD_CLIENTS_MAX = 128, 64
FLOOD = 64 << 20  # bytes: a server that still reads after that many has no bound
GET = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROGRAM = SHIM = ""
SLOWNESS = 1


class Failure(Exception):
    pass


def expect(is_good, what):
    if not is_good:
        raise Failure(what)


class Server:
    def __init__(self, *args, **env):
        self.process = subprocess.Popen([PROGRAM, *(args or ["0"])], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL if env else None,
                                        env={**os.environ, **env})
        line = self.process.stdout.readline()  # "port N" or "http://127.0.0.1:N/"
        self.port = int(re.findall(rb"\d+", line)[-1])

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if not failure:
            self.process.send_signal(signal.SIGTERM)
            expect(self.process.wait(LIMIT) == 0, "the server ends in order")
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def connect(self, to="127.0.0.1", receive_bytes=0):
        s = socket.socket()
        s.settimeout(LIMIT)
        if receive_bytes:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        s.connect((to, self.port))
        return s

    # The statuses of the answers to these bytes, until the server closes.
    def statuses(self, *parts):
        with self.connect() as s:
            for part in parts:
                s.sendall(part.encode("latin-1"))
            s.shutdown(socket.SHUT_WR)
            return [int(n) for n in re.findall(rb"HTTP/1\.1 (\d+) ", read_to_end(s))]


def read_to_end(s):
    got = b""
    while some := s.recv(1 << 16):
        got += some
    return got


def read_until(s, mark):
    got = b""
    while mark not in got:
        some = s.recv(1 << 16)
        expect(some, "no %r came, but %r" % (mark, got[-200:]))
        got += some
    return got


# Sends `part` repeatedly, `pause` apart and at most `cap` bytes of it, until the server has reset
# the connection. Returns the number of bytes taken, and the seconds.
def send_until_reset(s, part, pause=0.0, cap=1 << 62, seconds=LIMIT):
    sent, start = 0, time.monotonic()
    s.setblocking(False)
    while sent < cap and time.monotonic() < start + seconds:
        try:
            if select.select([], [s], [], 0.1)[1]:
                sent += s.send(part)
        except (ConnectionError, BrokenPipeError):
            return sent, time.monotonic() - start
        if pause:
            select.select([], [], [], pause)
    raise Failure("the server still reads after %d bytes and %.0f s"
                  % (sent, time.monotonic() - start))


# ---- all servers: one exchange with each, which proves that a client is served

def greet_echo(s):
    s.sendall(b"hello\n")
    read_until(s, b"hello\n")


def greet_chat(s):
    read_until(s, b"* you are ")


def greet_http(s):
    s.sendall(GET.encode())
    read_until(s, b"HTTP/1.1 200 ")


def failed_accept_is_tried_again(greet):
    with Server(LD_PRELOAD=SHIM, ACCEPT_FAILS="3") as server, server.connect() as s:
        greet(s)


def accept_that_always_fails_ends_the_server():
    server = Server(LD_PRELOAD=SHIM, ACCEPT_FAILS="1000000")
    try:
        expect(server.process.wait(LIMIT) == 1, "an exit status of 1")
    finally:
        server.process.kill()


def server_listens_on_loopback_unless_told():
    with Server() as server:
        server.connect().close()
        try:
            server.connect("127.0.0.2").close()
        except ConnectionRefusedError:
            pass
        else:
            raise Failure("it listens on 127.0.0.2, too")
    with Server("0", "127.0.0.2") as server:
        server.connect("127.0.0.2").close()


# The sockets of the server: a connection in the kernel's queue belongs to no process yet.
def sockets(server):
    n, folder = 0, "/proc/%d/fd" % server.process.pid
    for fd in os.listdir(folder):
        try:
            n += os.readlink("%s/%s" % (folder, fd)).startswith("socket:")
        except FileNotFoundError:  # closed since
            pass
    return n


def client_beyond_the_cap_waits_for_a_place(greet):
    with Server() as server:
        inside, before = [], sockets(server)
        for _ in range(CLIENTS_MAX):
            inside.append(server.connect())
            greet(inside[-1])
        outside, served = server.connect(), threading.Event()

        def wait_outside():
            greet(outside)
            served.set()

        thread = threading.Thread(target=wait_outside, daemon=True)
        thread.start()
        expect(not served.wait(0.5), "it is served beyond the cap")
        n = sockets(server) - before
        expect(n == CLIENTS_MAX, "%d are accepted" % n)
        inside.pop().close()
        expect(served.wait(LIMIT), "it is never served")
        thread.join()
        for s in inside + [outside]:
            s.close()


# The memory of a process that no file backs, in bytes.
def anonymous_bytes(server):
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as status:
        return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status.read())[1])


# Each client has been served once, so all that it needs for that has been touched.
def idle_client_holds_no_buffer(greet):
    with Server() as server:
        clients, before = [], 0
        for n in range(CLIENTS_MAX):
            clients.append(server.connect())
            greet(clients[-1])
            if n == 15:
                before = anonymous_bytes(server)
        each = (anonymous_bytes(server) - before) / (CLIENTS_MAX - 16)
        expect(each < 1536, "it holds %d bytes" % each)
        for s in clients:
            s.close()


# A client that goes on to send when the server stops reads to the end: the connection is not reset.
def stop_does_not_reset_a_client_that_sends(greet):
    for _ in range(3):
        with Server() as server, server.connect() as s:
            greet(s)
            has_begun, has_end = threading.Event(), threading.Event()

            def send():
                while not has_end.is_set():
                    s.sendall(b"goes on\n" * 100)
                    has_begun.set()

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                sends = pool.submit(send)
                expect(has_begun.wait(LIMIT), "it sends")
                server.process.send_signal(signal.SIGTERM)
                try:
                    read_to_end(s)
                finally:
                    has_end.set()
                sends.result()


# ---- 03_echo

def silent_client_is_dropped(*args):
    with Server(*args) as server, server.connect() as s:
        read_to_end(s)


def echo_client_that_does_not_read_is_dropped():
    with Server() as server, server.connect() as s:
        send_until_reset(s, bytes(1 << 16))


# ---- 13_chat

def chat_client_that_does_not_read_is_dropped():
    with Server() as server, server.connect() as talks, server.connect(receive_bytes=4096) as slow:
        greet_chat(talks)
        is_over = threading.Event()

        def talk():
            while not is_over.is_set():
                talks.sendall((b"x" * 190 + b"\n") * 100)

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        try:
            send_until_reset(slow, b"\n", pause=0.2)
        finally:
            is_over.set()
            thread.join()


def join_is_told_to_no_other():
    with Server() as server, server.connect() as first:
        greet_chat(first)
        for _ in range(100):
            with server.connect() as s:
                greet_chat(s)
        with server.connect() as last:
            greet_chat(last)
            last.sendall(b"done\n")
            got = read_until(first, b"done\n")
        expect(got == b"102: done\n", "the first client heard %r" % got[:200])


def control_characters_are_not_relayed():
    cases = [(b"a\x1b[2Jb", b"a[2Jb"), (b"a\0b\x01c\x7fd", b"abcd"), (b"tab\tcr\r", b"tabcr"),
             (b"a\xc2\x9b2Jb\xc2\x80", b"a2Jb"), (b"\x9b2J", b"2J"), (b"a\x9bb", b"ab"),
             (b"a\xc2\x1b\x9bb", b"ab"), (b"\xc2\xc2\x9b\x9bb", b"b"),
             (b"\xc3\x80 \xe2\x82\xac \xf0\x9f\x98\x80", b"\xc3\x80 \xe2\x82\xac \xf0\x9f\x98\x80")]
    with Server() as server, server.connect() as talks:
        greet_chat(talks)
        with server.connect() as hears:
            greet_chat(hears)
            talks.sendall(b"".join(said + b"\n" for said, _ in cases) + b"\x1b\r\nend\n")
            got = read_until(hears, b"end\n")
            want = b"".join(b"1: " + heard + b"\n" for _, heard in cases) + b"1: end\n"
            expect(got == want, "heard %r, wanted %r" % (got, want))


# ---- 06_http and the parts that 15_dashboard shares with it

# A refusal closes the connection: the valid request behind it has no answer.
def expect_statuses(wanted, requests):
    with Server() as server:
        for request in requests:
            got = server.statuses(request + GET)
            expect(got == wanted, "%r gave %s, wanted %s" % (request, got, wanted))


def get(target="/", version="HTTP/1.1", host="localhost", fields=""):
    host = "" if host is None else "Host: %s\r\n" % host
    return "GET %s %s\r\n%s%s\r\n" % (target, version, host, fields)


def method_that_is_no_token_is_refused():
    expect_statuses([400], [get().replace("GET", method) for method in
                            ["G(T", "G/T", "G:T", "G\"T", "G\xc9T", "G{T", ""]])


def name_that_is_no_token_is_refused():
    expect_statuses([400], [get(fields=name + ": 1\r\n") for name in
                            ["X(y)", "X/y", "X\"y", "X\xe9", "X y", " X", "X ", "[X]", ""]])
    expect_statuses([200, 200], [get(fields="X-1!#$%&'*+.^_`|~: 1\r\n")])


def host_comes_once_in_each_version_that_needs_it():
    two = "Host: localhost\r\n"
    expect_statuses([400], [get(version=v, host=None) for v in ["HTTP/1.1", "HTTP/1.2"]])
    expect_statuses([400], [get(version=v, fields=two)
                            for v in ["HTTP/1.0", "HTTP/1.1", "HTTP/1.2", "HTTP/1.9"]])


def host_that_is_none_is_refused():
    expect_statuses([400], [get(host=host) for host in
                            ["a b", "a/b", "u@a", "a:80:80", "::1", "[::1", "[::g]", "[::1]x",
                             "[::1]x:80", "[::1]:x", "a:8a", "a:65536", "a:-1", ":80", "a%4",
                             "a%zz", "[]", "[1.2.3.4]", "a,b c", "a\\b", "[" + "1:" * 40 + "]"]])


def every_form_of_host_is_accepted():
    expect_statuses([200, 200], [get(host=host) for host in
                                 ["", "x", "x:", "x:80", "X.y-z_~!$&'()*+,;=", "a%4F", "[::1]",
                                  "[::1]:80", "[::ffff:1.2.3.4]:", "127.0.0.1:65535"]])


def absolute_form_is_accepted():
    expect_statuses([200, 200], [get(target) for target in
                                 ["http://x/", "HTTP://x:80/?a", "http://x", "http://x?a=/b",
                                  "http://[::1]:80/", "/?u=http://x/none"]])
    expect_statuses([404, 200], [get("http://x/none"), get("http://none/none?/")])
    expect_statuses([400], [get(target) for target in
                            ["http:///", "http://", "http://u@x/", "http://x:y/", "ftp://x/",
                             "https://x/", "http:/x/", "x", "*", "?"]])
    expect_statuses([400], [get("http://x/", host=None)])
    expect_statuses([404, 200], [get("*").replace("GET", "OPTIONS")])


def later_version_of_http_1_is_accepted():
    expect_statuses([200, 200], [get(version="HTTP/1." + minor) for minor in "129"])


def version_that_is_not_1_is_refused():
    expect_statuses([505], [get(version=v) for v in ["HTTP/2.0", "HTTP/0.9", "HTTP/3.1"]])
    expect_statuses([400], [get(version=v) for v in
                            ["HTTP/1", "HTTP/1.10", "http/1.1", "HTTP/1,1", "HTTP/x.1",
                             "HTTP/1.x", "HTTPS/1.1", " HTTP/1.1", "HTTP/1.1 ", ""]])


def empty_lines_before_a_request_are_skipped():
    post = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    expect_statuses([200, 200], ["\r\n" + get(), "\r\n" * 20 + get(), get() + "\r\n",
                                 post + "\r\n"])
    with Server() as server:
        expect(server.statuses("\r", "\n\r", "\n" + GET) == [200], "empty lines in parts")
        expect(server.statuses("\r\n" * 10000 + GET) == [431], "more than the buffer holds")


def client_that_sends_empty_lines_alone_is_idle():
    with Server() as server, server.connect() as s:
        s.sendall(b"\r\n")
        got = read_to_end(s)
        expect(got == b"", "it has an answer: %r" % got)


def answer_has_a_date(*targets):
    with Server() as server:
        for target in targets:
            with server.connect() as s:
                before = int(time.time())
                s.sendall(get(target, fields="Connection: close\r\n").encode())
                head = read_until(s, b"\r\n\r\n").decode("latin-1")
            dates = re.findall("\r\nDate: (.*?)\r\n", head)
            expect(len(dates) == 1, "%s: Date stands in it %d times" % (target, len(dates)))
            at = email.utils.parsedate_to_datetime(dates[0])
            expect(email.utils.format_datetime(at, usegmt=True) == dates[0], "a form: " + dates[0])
            expect(before <= at.timestamp() <= time.time(), "a time: " + dates[0])


def http_client_that_does_not_read_is_dropped():
    with Server() as server, server.connect() as s:
        send_until_reset(s, GET.encode() * 100)


def refuse(s):
    s.sendall(b"GET /\r\n\r\n")
    read_until(s, b"HTTP/1.1 400 ")


def flood_after_a_refusal_is_cut_off():
    with Server() as server, server.connect() as s:
        refuse(s)
        send_until_reset(s, bytes(1 << 16), cap=FLOOD)


def drip_after_a_refusal_is_cut_off():
    with Server() as server, server.connect() as s:
        refuse(s)
        seconds = send_until_reset(s, b"x", pause=0.1)[1]
        expect(seconds < 4 * SLOWNESS, "it is read for %.1f s" % seconds)


# ---- 15_dashboard

def request_of_another_site_is_refused():
    expect_statuses([403], [get(path, fields="Sec-Fetch-Site: %s\r\n" % site)
                            for path in ["/", "/dump.txt", "/events", "/none"]
                            for site in ["cross-site", "same-site", "Same-Origin", "new", ""]])
    expect_statuses([200, 200], [get(fields="Sec-Fetch-Site: %s\r\n" % site)
                                 for site in ["same-origin", "none"]])


def field_that_decides_comes_once():
    fields = ["Host: localhost", "Origin: http://localhost", "Sec-Fetch-Site: same-origin"]
    for field in fields:
        rest = "".join(f + "\r\n" for f in fields if f != field)
        twice = (field + "\r\n") * 2
        expect_statuses([400], [get(host=None, version=version, fields=some)
                                for version in ["HTTP/1.0", "HTTP/1.1"]
                                for some in [rest + twice, twice + rest]])
    expect_statuses([200, 200], [get(host=None, fields="".join(f + "\r\n" for f in fields))])


def authority_of_another_name_is_refused():
    expect_statuses([403], [get("http://example.test/"), get("http://localhost.example.test/"),
                            get("/", host="")])
    expect_statuses([403], [get("/", version="HTTP/1.0", host=None)])
    expect_statuses([200, 200], [get("http://localhost/"), get("http://127.0.0.1:1/")])


# More clients than places: unless they make room, the page has to wait for a time limit.
def page_is_not_delayed(crowd):
    with Server() as server:
        silent = []
        for _ in range(300):
            silent.append(server.connect())
            silent[-1].sendall(crowd)
        start = time.monotonic()
        with server.connect() as s:
            greet_http(s)
        seconds = time.monotonic() - start
        expect(seconds < 6 * SLOWNESS, "the page has come after %.1f s" % seconds)
        for s in silent:
            s.close()


def idle_connections_do_not_delay_the_page():
    page_is_not_delayed(b"")


def half_requests_do_not_delay_the_page():
    page_is_not_delayed(b"GET / HTTP/1.1\r\n")


def refused_connections_do_not_delay_the_page():
    page_is_not_delayed(b"GET /\r\n\r\n")


# The number of sockets once it is stable, or None.
def sockets_for_a_while(server, seconds):
    n, n_times, end = -1, 0, time.monotonic() + seconds
    while n_times < 10 and time.monotonic() < end:
        was, n = n, sockets(server)
        n_times = n_times + 1 if n == was else 0
        time.sleep(0.02)
    return n if n_times == 10 else None


# Each further client takes the place of a silent one, and the last place is free for the next.
def crowd_is_no_more_than_the_cap():
    with Server() as server:
        before = sockets_for_a_while(server, LIMIT)
        expect(before is not None, "it opens and closes sockets all the time")
        for _ in range(8):
            crowd = [server.connect() for _ in range(4 * DASHBOARD_CLIENTS_MAX)]
            n = sockets_for_a_while(server, 3)  # silent ones are dropped after 5 s
            for s in crowd:
                s.close()
            if n is not None and n - before >= DASHBOARD_CLIENTS_MAX - 1:
                break
        expect(n is not None, "their number does not settle")
        expect(n - before in (DASHBOARD_CLIENTS_MAX - 1, DASHBOARD_CLIENTS_MAX),
               "%d are accepted" % (n - before))


def silent_client_stays_while_there_is_room():
    head = GET.replace("GET", "HEAD").encode()
    with Server() as server, server.connect() as s:
        s.sendall(head)
        read_until(s, b"\r\n\r\n")
        for _ in range(30):
            expect(server.statuses(GET) == [200], "another client is served")
        s.sendall(head)
        read_until(s, b"\r\n\r\n")


LIMITS = [(silent_client_is_dropped,), (http_client_that_does_not_read_is_dropped,),
          (flood_after_a_refusal_is_cut_off,), (drip_after_a_refusal_is_cut_off,)]
CLAIMS = {
    "03_echo": [
        (failed_accept_is_tried_again, greet_echo), (accept_that_always_fails_ends_the_server,),
        (client_beyond_the_cap_waits_for_a_place, greet_echo),
        (idle_client_holds_no_buffer, greet_echo),
        (server_listens_on_loopback_unless_told,), (silent_client_is_dropped,),
        (echo_client_that_does_not_read_is_dropped,),
        (stop_does_not_reset_a_client_that_sends, greet_echo)],
    "06_http": [
        (failed_accept_is_tried_again, greet_http), (accept_that_always_fails_ends_the_server,),
        (client_beyond_the_cap_waits_for_a_place, greet_http),
        (idle_client_holds_no_buffer, greet_http), *LIMITS,
        (method_that_is_no_token_is_refused,), (name_that_is_no_token_is_refused,),
        (host_comes_once_in_each_version_that_needs_it,), (host_that_is_none_is_refused,),
        (every_form_of_host_is_accepted,), (absolute_form_is_accepted,),
        (later_version_of_http_1_is_accepted,), (version_that_is_not_1_is_refused,),
        (empty_lines_before_a_request_are_skipped,),
        (client_that_sends_empty_lines_alone_is_idle,), (answer_has_a_date, "/", "/none")],
    "13_chat": [
        (failed_accept_is_tried_again, greet_chat), (accept_that_always_fails_ends_the_server,),
        (client_beyond_the_cap_waits_for_a_place, greet_chat),
        (server_listens_on_loopback_unless_told,),
        (silent_client_is_dropped, "0", "127.0.0.1", "1"),
        (chat_client_that_does_not_read_is_dropped,), (join_is_told_to_no_other,),
        (control_characters_are_not_relayed,),
        (stop_does_not_reset_a_client_that_sends, greet_chat)],
    "15_dashboard": [
        (failed_accept_is_tried_again, greet_http), (accept_that_always_fails_ends_the_server,),
        (crowd_is_no_more_than_the_cap,), *LIMITS, (request_of_another_site_is_refused,),
        (field_that_decides_comes_once,), (authority_of_another_name_is_refused,),
        (idle_connections_do_not_delay_the_page,), (half_requests_do_not_delay_the_page,),
        (refused_connections_do_not_delay_the_page,), (silent_client_stays_while_there_is_room,),
        (answer_has_a_date, "/", "/events", "/none")],
}
NEED_SHIM = [failed_accept_is_tried_again, accept_that_always_fails_ends_the_server]


def main(name, program, shim):
    global PROGRAM, SHIM, SLOWNESS
    PROGRAM, SHIM, SLOWNESS = program, shim, 5 if shim == "-" else 1
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    claims = [c for c in CLAIMS[name] if shim != "-" or c[0] not in NEED_SHIM]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ends = [(c[0].__name__, pool.submit(c[0], *c[1:])) for c in claims]
    n_failed = 0
    for claim, end in ends:
        why = end.exception()
        n_failed += why is not None
        print("%s: %s%s" % (name, claim, "" if why is None else ": FAILED: %r" % why))
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in CLAIMS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
