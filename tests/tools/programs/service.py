# SPDX-License-Identifier: MIT OR 0BSD
"""Plays the manager of examples/programs/service.c, as systemd does: it opens sockets for it, gets
its notifications, watches it, reloads it and stops it; and its clients.

    service.py PROGRAM DIRECTORY     a directory for files; a check preloads DIRECTORY/hang.so

PARSER: a python3 that has prometheus_client, or empty. Prints its checks; fails at the first that
does not hold."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

PROGRAM, WORK = sys.argv[1:3]
PARSER = os.environ.get('PARSER')
SECONDS = 20  # the longest wait for anything


def claim(text):
    print('service:', text, flush=True)


def check(holds, *why):
    if not holds:
        raise AssertionError(' '.join(map(str, why)))


def until(condition, what):
    end = time.monotonic() + SECONDS
    while not condition():
        check(time.monotonic() < end, 'in vain:', what)
        time.sleep(0.01)


class Manager:
    """One service and its notifications: a list of (time, dictionary of the lines)."""

    def __init__(self, settings='', address=None, watchdog=0, sockets=(), names=None, env=None,
                 wraps=(), reads=True, log=None, listen_pid=None, watchdog_pid=None,
                 path='/conf'):
        self.messages, self.log_bytes, self.path = [], b'', WORK + path
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.address = address if address is not None else WORK + '/notify'
        with contextlib.suppress(FileNotFoundError):
            os.unlink(WORK + '/notify')
        if self.address.startswith(('/', '@')) and 'missing' not in self.address:
            with contextlib.suppress(OSError):  # too long
                self.notify.bind(self.address.replace('@', '\0', 1))
        self.notify.setblocking(False)
        self.reads = reads
        if settings is not None:
            self.configure(settings)
        out, self.log_write = os.pipe()
        self.log_pipe = out
        os.set_blocking(out, False)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(('LISTEN_', 'NOTIFY_'))}
        self.env['NOTIFY_SOCKET'] = self.address
        if watchdog:
            self.env['WATCHDOG_USEC'] = str(watchdog)
        stat = os.fstat(self.log_write)
        self.env['JOURNAL_STREAM'] = f'{stat.st_dev}:{stat.st_ino}'
        self.env.update(env or {})
        self.start(sockets, names, wraps, listen_pid, watchdog_pid, log)

    def start(self, sockets, names, wraps, listen_pid, watchdog_pid, log):
        pid = os.fork()
        if pid == 0:
            try:
                kept = [os.dup(s.fileno()) for s in sockets]  # above the numbers that are assigned
                kept = [self.above(fd, 3 + len(kept)) for fd in kept]
                os.dup2(self.log_write if log is None else log, 2)
                for i, fd in enumerate(kept):
                    os.dup2(fd, 3 + i)
                os.closerange(3 + len(kept), 256)
                if sockets:
                    self.env['LISTEN_FDS'] = str(len(sockets))
                    self.env['LISTEN_PID'] = str(listen_pid or os.getpid())
                    if names:
                        self.env['LISTEN_FDNAMES'] = names
                if watchdog_pid:
                    self.env['WATCHDOG_PID'] = str(watchdog_pid)
                for n in (signal.SIGPIPE, signal.SIGINT):
                    signal.signal(n, signal.SIG_DFL)
                argv = [*wraps, PROGRAM, self.path]
                os.execvpe(argv[0], argv, self.env)
            finally:
                os._exit(127)
        self.pid, self.status = pid, None
        running.append(self)

    @staticmethod
    def above(fd, least):
        while fd < least + 8:
            fd = os.dup(fd)
        return fd

    def configure(self, settings):
        with open(self.path, 'w', encoding='ascii') as f:
            f.write('# of a check\n\nlisten = 127.0.0.1:0\nmetrics = 127.0.0.1:0\n' + settings)

    def poll(self):
        """Takes what the service has sent and logged, and its end."""
        with contextlib.suppress(BlockingIOError):
            while self.reads:
                data, ancillary, _, _ = self.notify.recvmsg(4096, 256)
                at = time.monotonic()
                pid = next(struct.unpack('iII', d[:12])[0] for level, kind, d in ancillary
                           if kind == socket.SCM_CREDENTIALS)
                check(pid == self.pid, 'a message of process', pid, 'and not', self.pid)
                lines = data.decode().split('\n')
                check(all(re.fullmatch(r'[A-Z_]+=[^\x00-\x1f]*', s) for s in lines), data)
                self.messages.append((at, dict(s.split('=', 1) for s in lines)))
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.log_pipe, 65536):
                self.log_bytes += chunk
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self

    def count(self, **lines):
        self.poll()
        return sum(all(m.get(k) == v for k, v in lines.items()) for _, m in self.messages)

    def until_message(self, n=1, **lines):
        until(lambda: self.count(**lines) >= n or self.status is not None, lines)
        check(self.count(**lines) >= n, lines, 'did not come; the log:', self.log_bytes.decode())
        return next(m for _, m in self.messages[::-1]
                    if all(m.get(k) == v for k, v in lines.items()))

    def until_logged(self, pattern, n=1):
        until(lambda: len(re.findall(pattern, self.poll().log_bytes.decode())) >= n, pattern)
        return re.search(pattern, self.log_bytes.decode())

    def port(self, name):
        return int(self.until_logged(rf'event=listening name={name} address=\S+:(\d+)').group(1))

    def connect(self, name='echo'):
        return socket.create_connection(('127.0.0.1', self.port(name)), timeout=SECONDS)

    def get(self, path, head=b'', name='metrics'):
        """The status, the fields and the body of an answer; b'' behind a close without one."""
        with self.connect(name) as s:
            s.sendall(b'GET ' + path + b' HTTP/1.1\r\nHost: x\r\n' + head + b'\r\n')
            return answer(s)

    def end(self, status=0):
        until(lambda: self.poll().status is not None, 'the end of the service')
        check(self.status == status, 'status', self.status, self.log_bytes.decode())
        running.remove(self)
        self.notify.close()
        os.close(self.log_pipe)
        os.close(self.log_write)

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        self.end()


running = []


def answer(s):
    data = b''
    while chunk := s.recv(65536):
        data += chunk
    if not data:
        return 0, b'', b''
    head, _, body = data.partition(b'\r\n\r\n')
    return int(head.split()[1]), head, body


def echo(s, data):
    s.sendall(data)
    got = b''
    while len(got) < len(data):
        chunk = s.recv(65536)
        check(chunk, 'the echo ended after', got)
        got += chunk
    check(got == data, 'the echo is not the text')


def is_closed(s):
    try:
        return s.recv(1) == b''
    except ConnectionResetError:
        return True


# ---- notifications

def life():
    m = Manager('drain = 7\n')
    m.until_message(READY='1')
    check(m.messages[0][1]['READY'] == '1', m.messages)
    with m.connect() as s:
        echo(s, b'ready')
    claim('READY=1 comes from the service itself, once it serves')
    os.kill(m.pid, signal.SIGTERM)
    said = m.until_message(STOPPING='1')
    check(7_000_000 <= int(said['EXTEND_TIMEOUT_USEC']) <= 12_000_000, said)
    m.end()
    check([list(x)[0] for _, x in m.messages] == ['READY', 'STOPPING'], m.messages)
    claim('STOPPING=1 asks for the time of the drain')


def sockets_of_managers():
    m = Manager(address='@volt-echo-%d' % os.getpid())
    m.until_message(READY='1')
    m.stop()
    claim('an abstract socket of the manager works')
    for address in (WORK + '/missing', 'vsock:2:1', '', '/' + 'x' * 200):
        m = Manager(address=address)
        with m.connect() as s:
            echo(s, b'alone')
        m.stop()
    claim('without a manager, or with one that cannot be reached, the service works')
    m = Manager(address=WORK + '/notify', watchdog=20000, reads=False)
    with m.connect() as s:
        for _ in range(100):
            echo(s, b'unread')
            time.sleep(0.01)
        began = time.monotonic()
        os.kill(m.pid, signal.SIGTERM)
        m.end()
        check(time.monotonic() - began < 10, 'the stop took', time.monotonic() - began)
    claim('a manager that reads nothing stops neither the echo nor the end')


def reload():
    m = Manager('clients = 1\n')
    m.until_message(READY='1')
    with m.connect() as one, m.connect() as two:
        echo(one, b'one')
        two.sendall(b'two')
        two.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            check(not two.recv(3), 'a client above the limit was served')
        two.settimeout(SECONDS)
        m.configure('clients = 2\n')
        before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
        os.kill(m.pid, signal.SIGHUP)
        said = m.until_message(RELOADING='1')
        check(before <= int(said['MONOTONIC_USEC']) <=
              time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6, said)
        m.until_message(2, READY='1')
        check(two.recv(3) == b'two', 'the new limit is not in force')
        echo(one, b'still')
        claim('SIGHUP: RELOADING=1 with its time, then READY=1; the new limit is in force at once')
        for text, line, error in (('clients = many\n', 5, 'not a number'), ('cleints = 3\n', 5,
                                  'no such name'), ('idle 3\n', 5, 'not name'), ('log = 0', 5,
                                  'not a number'), ('drain = 99999999999999999999\n', 5, 'not a'),
                                  ('idle = 1 second\n', 5, 'not name')):
            n = m.count(READY='1')
            m.configure(text)
            os.kill(m.pid, signal.SIGHUP)
            said = m.until_message(n + 1, READY='1')
            check('broken' in said['STATUS'], said)
            m.until_logged(rf'configuration_refused file=\S+ line={line} error="{error}')
        os.unlink(WORK + '/conf')
        os.kill(m.pid, signal.SIGHUP)
        m.until_logged(r'configuration_refused file=\S+ line=0 error=".*ENOENT')
        echo(one, b'and')
        echo(two, b'on')
        claim('a broken configuration is refused with its line, and the old one stays')
    m.stop()
    m = Manager('port = 1\n')
    m.end(1)
    claim('a service with a broken configuration does not start')
    os.mkdir(WORK + '/directory')
    for settings, path in ((None, '/missing'), (None, '/directory'), ('# ' + 'x' * 8192, '/long')):
        m = Manager(settings, path=path)
        m.end(1)
        check(re.search('configuration_refused', m.log_bytes.decode()), m.log_bytes)
    claim('nor does one whose configuration cannot be read, or is too long')


# ---- the watchdog

def watchdog():
    usec = 400_000
    m = Manager(watchdog=usec)
    m.until_message(8, WATCHDOG='1')
    times = [at for at, x in m.messages if 'WATCHDOG' in x]
    gaps = [b - a for a, b in zip(times, times[1:])]
    check(max(gaps) < usec / 1e6, 'gaps', gaps)
    check(min(gaps) > usec / 1e6 / 8, 'gaps', gaps)
    fds = len(os.listdir(f'/proc/{m.pid}/fd'))
    m.until_message(14, WATCHDOG='1')
    check(len(os.listdir(f'/proc/{m.pid}/fd')) <= fds, 'a message costs a descriptor')
    m.stop()
    claim('WATCHDOG=1 comes twice in the time of the manager')
    m = Manager(watchdog=usec, watchdog_pid=1)
    m.until_message(READY='1')
    time.sleep(3 * usec / 1e6)
    check(m.count(WATCHDOG='1') == 0, m.messages)
    m.stop()
    claim('a watchdog of another process is not fed')


def hang():
    """One worker blocks in a system call; the others go on, and the watchdog is not fed."""
    usec, file = 1_000_000, WORK + '/hang'
    with open(file, 'w', encoding='ascii'):
        pass
    m = Manager(watchdog=usec, env={'LD_PRELOAD': WORK + '/hang.so', 'HANG_FILE': file})
    m.until_message(2, WATCHDOG='1')
    check(m.get(b'/health')[0] == 200, 'not healthy')
    with m.connect() as stuck, m.connect() as other:
        stuck.sendall(b'HANG')
        m.until_logged('event=unhealthy')
        n = m.count(WATCHDOG='1')
        time.sleep(2 * usec / 1e6)
        echo(other, b'other clients are served')
        check(m.count(WATCHDOG='1') == n, 'the watchdog is fed')
        claim('while a poll hangs the watchdog is not fed, and other clients are served')
        until(lambda: m.get(b'/health')[0] == 503, '/health')
        check(float(re.search(rb'\nvolt_longest_poll_seconds (\S+)', m.get(b'/metrics')[2])
                    .group(1)) > 2, 'the metrics do not show it')
        claim('/health is 503 then, and the metrics show the age of the poll')
        os.unlink(file)
        check(stuck.recv(4) == b'HANG', 'the echo is lost')
        m.until_message(n + 2, WATCHDOG='1')
        check(m.get(b'/health')[0] == 200, 'not healthy again')
        claim('afterwards it is fed again')
    m.stop()


# ---- sockets of the manager

def listener(kind=socket.SOCK_STREAM, listens=True):
    s = socket.socket(socket.AF_INET, kind)
    s.bind(('127.0.0.1', 0))
    if listens:
        s.listen()
    return s


def activation():
    with listener() as a, listener() as b, socket.socket() as early:
        early.connect(b.getsockname())
        early.sendall(b'before the start')
        m = Manager(sockets=(a, b), names='metrics:echo')
        m.until_message(READY='1')
        check(m.port('echo') == b.getsockname()[1] and m.port('metrics') == a.getsockname()[1],
              m.log_bytes)
        check(len(re.findall('by=manager', m.log_bytes.decode())) == 2, m.log_bytes)
        check(early.recv(99) == b'before the start', 'a client before the start is lost')
        check(m.get(b'/metrics')[0] == 200, 'no metrics')
        m.stop()
        claim('sockets of the manager are taken by name, with the clients that wait in them')
        with socket.create_connection(b.getsockname(), timeout=SECONDS) as between:
            between.sendall(b'between')
            m = Manager(sockets=(a, b), names='metrics:echo')
            check(between.recv(99) == b'between', 'a client between two services is lost')
        m.stop()
        claim('a restart loses no client')
        m = Manager(sockets=(a, b), names='metrics:echo', listen_pid=1)
        check(len(re.findall('by=service', m.until_logged('by=service', 2).string)) == 2, '')
        m.stop()
        claim('sockets for another process are left alone')
    with listener() as a, listener(listens=False) as b, listener(socket.SOCK_DGRAM, False) as c:
        m = Manager(sockets=(a, b, c), names='other:echo:metrics')
        m.until_message(READY='1')
        m.until_logged('event=sockets_closed')
        check(m.port('echo') != b.getsockname()[1], m.log_bytes)
        fds = [os.readlink(f'/proc/{m.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{m.pid}/fd')]
        inode = f'socket:[{os.fstat(c.fileno()).st_ino}]'
        check(inode not in fds, 'a socket without use is open')
        m.stop()
        claim('sockets with another name, or that do not listen, are closed')
    with contextlib.ExitStack() as stack:
        given = [stack.enter_context(listener()) for _ in range(12)]
        m = Manager(sockets=given, names='echo:metrics' + ':echo' * 10)
        m.until_message(READY='1')
        m.until_logged('event=sockets_closed')
        fds = [os.readlink(f'/proc/{m.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{m.pid}/fd')]
        left = [i for i, s in enumerate(given) if f'socket:[{os.fstat(s.fileno()).st_ino}]' in fds]
        check(left == [0, 1], 'open are those of the numbers', left)
        m.stop()
        claim('so are those that are more than the service has room for')


# ---- an accept that fails

def accept_fails():
    shim = {'LD_PRELOAD': WORK + '/accept_fails.so'}
    m = Manager(env={**shim, 'ACCEPT_FAILS': '6'})  # both listeners share them
    with m.connect() as s:
        echo(s, b'after the pauses')
    check(m.get(b'/metrics')[0] == 200, 'no metrics')
    m.until_logged('event=accept_failed', 6)
    m.stop()
    claim('an accept that fails is tried again, and the service goes on')
    m = Manager(env={**shim, 'ACCEPT_FAILS': '1000000'})
    m.end(1)
    claim('one that always fails ends the service')


# ---- the stop

def fill(s):
    """Sends and does not read, until the service takes no more."""
    s.setblocking(False)
    n, chunk = 0, b'x' * 65536
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            n += s.send(chunk)
            end = time.monotonic() + 0.5
        except BlockingIOError:
            time.sleep(0.01)
    s.setblocking(True)
    s.settimeout(SECONDS)
    return n


def drain():
    m = Manager('drain = 3\n')
    m.until_message(READY='1')
    with m.connect() as idle, m.connect() as busy, m.connect() as lazy, m.connect() as deaf:
        for s in (idle, busy):
            echo(s, b'hello')
        for s in (lazy, deaf):
            fill(s)
        busy.sendall(b'the last words')
        began = time.monotonic()
        os.kill(m.pid, signal.SIGTERM)
        check(busy.recv(99) == b'the last words', 'words on their way are lost')
        for _ in range(20):  # these come too late; they must not reset the connection
            busy.sendall(b'more')
            time.sleep(0.01)
        late = b''
        while chunk := busy.recv(99):
            late += chunk
        check(len(late) < 80, 'the echo goes on:', late)
        busy.close()
        check(is_closed(idle), 'an idle client is not closed')
        claim('a stop echoes what was sent, and closes idle clients')
        check(m.get(b'/metrics')[0] == 200, 'no metrics')
        n = 0
        while chunk := lazy.recv(65536):
            n += len(chunk)
        check(n > 0, 'nothing came')
        lazy.close()
        check(time.monotonic() - began < 3, 'a client that reads late was cut')
        m.end()
        took = time.monotonic() - began
        check(3 <= took < 8, 'the drain took', took)
        check(re.search('event=stopped cut=1', m.log_bytes.decode()), m.log_bytes)
        claim('metrics are served until the end; a client that does not read is cut at the limit')
    m = Manager('drain = 3600\n')
    m.until_message(READY='1')
    with m.connect() as deaf:
        fill(deaf)
        os.kill(m.pid, signal.SIGTERM)
        m.until_message(STOPPING='1')
        check(m.count(STOPPING='1') == 1, m.messages)
        m.stop()
    claim('a second signal cuts the drain')
    m = Manager('idle = 1\n')
    with m.connect() as s:
        check(is_closed(s), 'a silent client is not closed')
    m.stop()
    claim('a silent client is closed at its limit')


# ---- metrics

def parse(text):
    """Reads OpenMetrics 1.0 strictly, as far as the service uses it: {name and labels: value}."""
    check(text.endswith('# EOF\n') and text.count('# EOF') == 1, 'the end is missing')
    samples, families, family, kind, unit = {}, set(), None, None, None
    for line in text[:-len('# EOF\n')].splitlines():
        if line.startswith('#'):
            _, what, name, rest = line.split(' ', 3)
            if what == 'TYPE':
                check(name not in families, 'a family twice:', name)
                families.add(name)
                family, kind, unit = name, rest, None
                check(rest in ('counter', 'gauge', 'histogram'), line)
            check(name == family, 'a line of another family:', line)
            if what == 'UNIT':
                unit = rest
                check(name.endswith('_' + rest), line)
            check(what in ('TYPE', 'UNIT', 'HELP'), line)
            continue
        match = re.fullmatch(r'([a-z_]+)(\{le="([^"]+)"\})? (\S+)', line)
        check(match, 'not a sample:', line)
        name, labels, le, value = match.groups()
        suffix = {'counter': '_total', 'gauge': '', 'histogram': '_bucket'}[kind]
        check(name == family + suffix, 'a sample of another family:', line)
        check((kind == 'histogram') == (labels is not None), line)
        check(name + (labels or '') not in samples, 'a sample twice:', line)
        check(float(value) >= 0 and (kind != 'counter' or unit or value.isdigit()), line)
        samples[name + (labels or '')] = float(value)
    for name in [f for f in families if f + '_bucket{le="+Inf"}' in samples]:
        buckets = [(float(k.split('"')[1]), v) for k, v in samples.items()
                   if k.startswith(name + '_bucket')]
        counts = [v for _, v in buckets]
        check(buckets == sorted(buckets) and counts == sorted(counts), 'order of buckets:', name)
    return samples


def scrape(m):
    status, head, body = m.get(b'/metrics', b'Accept: application/openmetrics-text\r\n')
    check(status == 200 and b'application/openmetrics-text; version=1.0.0' in head, head)
    return body.decode()


def metrics():
    m = Manager()
    m.until_message(READY='1')
    first = parse(scrape(m))
    for i in range(5):
        with m.connect() as s:
            echo(s, b'12345678')
    with m.connect() as s:
        echo(s, b'here')
        text = scrape(m)
        second = parse(text)
    check(second['echo_connections_total'] == first['echo_connections_total'] + 6, text)
    check(second['echo_bytes_total'] == first['echo_bytes_total'] + 44, text)
    check(second['echo_clients'] == 1, text)
    check(all(second[k] >= v for k, v in first.items() if k.endswith('_total')), text)
    # a worker publishes what it has counted when it goes to sleep
    until(lambda: parse(scrape(m))['volt_spawned_total'] >=
          first['volt_spawned_total'] + 7, 'the tasks')
    check(parse(scrape(m))['volt_poll_seconds_bucket{le="+Inf"}'] > 20, text)
    claim('the metrics are OpenMetrics, and count clients and bytes')
    if PARSER:
        script = ('import sys; from prometheus_client.openmetrics.parser import '
                  'text_string_to_metric_families as p; print(len(list(p(sys.stdin.read()))))')
        n = subprocess.run([PARSER, '-c', script], input=text, capture_output=True, text=True)
        check(n.returncode == 0 and int(n.stdout) == text.count('# TYPE'), n.stderr or n.stdout)
        claim('prometheus_client parses them')
    if shutil.which('promtool'):
        n = subprocess.run(['promtool', 'check', 'metrics'], input=text, capture_output=True,
                           text=True)
        check(n.returncode != 1, n.stdout + n.stderr)
        claim('promtool parses them')
    for request, status in ((b'POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n', 405),
                            (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 404),
                            (b'GET /metrics HTTP/1.1\r\n\r\n', 400), (b'\x16\x03\x01\r\n\r\n', 400),
                            (b'HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n', 200),
                            (b'GET /health HTTP/1.0\r\n\r\n', 200),
                            (b'GET /' + b'x' * 5000 + b' HTTP/1.1\r\n', 431)):
        with m.connect('metrics') as s:
            s.sendall(request)
            got = answer(s)
            check(got[0] == status, request[:40], got)
            check(not request.startswith(b'HEAD') or got[2] == b'', got)
    curl = subprocess.run(['curl', '-sf', f'http://127.0.0.1:{m.port("metrics")}/metrics'],
                          capture_output=True, text=True)
    check(curl.returncode == 0 and parse(curl.stdout), curl)
    with m.connect('metrics') as s:  # which leaves in the middle
        s.sendall(b'GET /metr')
    claim('other requests are refused as HTTP wants it')
    m.stop()


# ---- the log and the rest

def logs():
    m = Manager('log = 7\n', path='/a \"b\\c')
    m.until_message(READY='1')
    with m.connect() as s:
        echo(s, b'log')
    m.until_logged('event=client_left')
    m.stop()
    for line in m.log_bytes.decode().splitlines():
        check(re.fullmatch(r'<[3-7]>event=[a-z_]+( [a-z]+=("([^"\\]|\\.)*"|[^ "]+))*', line), line)
    check(m.log_bytes.decode().count('event=stopped') == 1, m.log_bytes)
    check(rf'file="{WORK}/a \"b\\c"' in m.log_bytes.decode(), m.log_bytes)
    claim('in the journal each line has a priority and pairs of key and value')
    with open(WORK + '/plain', 'wb') as f:
        m = Manager(log=f.fileno())
        until(lambda: os.path.getsize(WORK + '/plain') > 0, 'a log')
        m.until_message(READY='1')
        m.stop()
    with open(WORK + '/plain', encoding='ascii') as f:
        for line in f:
            check(re.match(r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=[3-7] event=', line),
                  line)
    claim('elsewhere each line has its time')
    m = Manager('log = 7\n')
    m.until_message(READY='1')
    m.port('echo'), m.port('metrics')
    m.poll = lambda: m  # the log is not read any more
    for i in range(1500):
        with socket.create_connection(('127.0.0.1', m.port('echo')), timeout=SECONDS) as s:
            echo(s, b'x')
    dropped = parse(scrape(m))['echo_log_lines_dropped_total']
    check(dropped > 0, 'no line was dropped')
    del m.poll
    m.stop()
    claim('a log that nothing reads stops no client; lines are dropped and counted')


def switches(pid):
    n = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/status', encoding='ascii') as f:
            n += sum(int(line.split()[1]) for line in f if 'ctxt_switches' in line)
    return n


def idle():
    m = Manager()
    m.until_message(READY='1')
    with m.connect() as s:
        echo(s, b'x')
        until(lambda: [switches(m.pid), time.sleep(0.3)][0] == switches(m.pid), 'rest')
        before = switches(m.pid)
        time.sleep(2)
        check(switches(m.pid) == before, 'it wakes up without need')
    m.stop()
    claim('without a watchdog an idle service does not wake up')


def valgrind():
    with open(WORK + '/suppressed', 'w', encoding='ascii') as f:  # MSG_TRUNC needs no buffer
        f.write('{\ndrop\nMemcheck:Param\nsocketcall.recvfrom(buf)\n...\nfun:http_drop\n}\n')
    m = Manager('drain = 1\nlog = 7\n', watchdog=9_000_000, wraps=(
        'valgrind', '-q', '--error-exitcode=9', '--leak-check=full', '--trace-children=no',
        f'--suppressions={WORK}/suppressed', f'--log-file={WORK}/valgrind'))
    m.until_message(READY='1')
    for _ in range(3):
        with m.connect() as s:
            echo(s, b'valgrind' * 100)
        scrape(m)
    os.kill(m.pid, signal.SIGHUP)
    m.until_message(2, READY='1')
    with m.connect() as deaf:
        fill(deaf)
        os.kill(m.pid, signal.SIGTERM)
        try:
            m.end()
        except AssertionError:
            with open(WORK + '/valgrind', encoding='ascii') as f:
                print(f.read(), end='')
            raise
    claim('valgrind finds no error and no leak')


try:
    for part in (life, sockets_of_managers, reload, watchdog, hang, activation, accept_fails,
                 drain, metrics, logs, idle, valgrind):
        part()
finally:
    for left in running:
        print('service: status', left.poll().status, 'log:', left.log_bytes.decode(), flush=True)
        if left.status is None:
            os.kill(left.pid, signal.SIGKILL)
            os.waitpid(left.pid, 0)
