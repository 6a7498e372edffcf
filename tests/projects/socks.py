# SPDX-License-Identifier: MIT OR 0BSD
"""Clients of a SOCKS5 proxy, and the servers behind it, for socks.sh.

    socks.py open PORT           messages in pieces and at once, refusals, ends; without a login
    socks.py login PORT          logins, right and wrong, of USER me and PASSWORD secret
    socks.py stalled PORT LIMIT  clients that stop at each byte of the handshake
    socks.py silent PORT LIMIT   a relay that is silent, and one that is not
    socks.py limit PORT N        N clients at a time
    socks.py many PORT N         connections that all stay; a line on standard input ends them
    socks.py short PORT N        connections one after the other
    socks.py drain PORT PID      SIGTERM while a relay is under way
Each claim is a line of the output.
"""
import os
import select
import signal
import socket
import struct
import sys
import time

PATIENCE = 20
OK, FAILED, NO_HOST, REFUSED, NO_COMMAND, NO_TYPE = 0, 1, 4, 5, 7, 8
GREETING = b"\5\1\0"


def claim(text):
    print(text, flush=True)


def connect():
    s = socket.create_connection(("127.0.0.1", PORT), PATIENCE)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def exactly(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        assert more, f"the end after {got!r}, {n} bytes wanted"
        got += more
    return got


def listener(family=socket.AF_INET):
    s = socket.socket(family)
    s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    s.listen(1024)
    s.settimeout(PATIENCE)
    return s


def request(address, port, command=1, kind=None):
    if kind is None:
        kind = 3 if isinstance(address, str) else 1 if len(address) == 4 else 4
    if kind == 3:
        address = address.encode() if isinstance(address, str) else address
        address = bytes([len(address)]) + address
    return b"\5" + bytes([command]) + b"\0" + bytes([kind]) + address + struct.pack(">H", port)


def answer(s):
    """The code, and the address and port that the proxy says it uses."""
    head = exactly(s, 4)
    assert head[0] == 5 and head[2] == 0 and head[3] in (1, 4), head
    address = exactly(s, 4 if head[3] == 1 else 16)
    return head[1], address, struct.unpack(">H", exactly(s, 2))[0]


def is_at_end(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def opened(target, address=b"\x7f\0\0\1"):
    """A connection through the proxy: both of its ends."""
    s = connect()
    s.sendall(GREETING)
    assert exactly(s, 2) == b"\5\0"
    s.sendall(request(address, target.getsockname()[1]))
    code, *_ = answer(s)
    assert code == OK, code
    return s, target.accept()[0]


def code_of(message):
    with connect() as s:
        s.sendall(GREETING + message)
        assert exactly(s, 2) == b"\5\0"
        code, *_ = answer(s)
        assert s.recv(1) == b"", "more than a refusal"  # and no reset, which might overtake it
    return code


def test_open():
    target = listener()
    port = target.getsockname()[1]
    for address, name in ((b"\x7f\0\0\1", "IPv4"), ("127.0.0.1", "an address as a name"),
                          ("localhost", "a name")):
        s, peer = opened(target, address)
        s.sendall(b"there")
        assert exactly(peer, 5) == b"there"
        peer.sendall(b"and back")
        assert exactly(s, 8) == b"and back"
        s.close(), peer.close()
        claim(f"{name} is connected to, and bytes come through both ways")
    v6 = listener(socket.AF_INET6)
    s, peer = opened(v6, socket.inet_pton(socket.AF_INET6, "::1"))
    s.close(), peer.close(), v6.close()
    claim("an IPv6 address is connected to")

    s = connect()
    s.sendall(GREETING)
    exactly(s, 2)
    s.sendall(request(b"\x7f\0\0\1", port))
    code, address, own = answer(s)
    peer, at = target.accept()
    assert (code, socket.inet_ntoa(address), own) == (OK, *at), (address, own, at)
    s.close(), peer.close()
    claim("the answer has the address that the target sees")

    whole = GREETING + request("localhost", port) + b"early"
    for cut in range(1, len(whole)):
        s = connect()
        s.sendall(whole[:cut])
        if cut >= len(GREETING):
            assert exactly(s, 2) == b"\5\0"
        s.sendall(whole[cut:])
        if cut < len(GREETING):
            assert exactly(s, 2) == b"\5\0"
        assert answer(s)[0] == OK
        peer = target.accept()[0]
        assert exactly(peer, 5) == b"early"
        s.close(), peer.close()
    claim(f"a handshake with data behind it, cut at each of {len(whole) - 1} places, loses nothing")
    s = connect()
    for byte in whole:
        s.sendall(bytes([byte]))
    assert exactly(s, 2) == b"\5\0" and answer(s)[0] == OK
    peer = target.accept()[0]
    assert exactly(peer, 5) == b"early"
    s.close(), peer.close()
    claim("a handshake of single bytes is complete")

    for n in range(len(whole) - 5):
        s = connect()
        s.sendall(whole[:n])
        s.shutdown(socket.SHUT_WR)
        got = b""
        while more := s.recv(10):
            got += more
        assert got == (b"\5\0" if n >= len(GREETING) else b""), (n, got)
        s.close()
    claim("a client that ends inside the handshake is closed")
    for first in (b"\4\1\0\x50\x7f\0\0\1\0", b"GET / HTTP/1.1\r\n\r\n", b"\0\0"):
        s = connect()
        s.sendall(first)
        assert is_at_end(s), first
        s.close()
    claim("SOCKS4, HTTP and zeros get no answer and are closed")
    s = connect()
    s.sendall(GREETING + b"\4\1\0\1\x7f\0\0\1\0\x50")
    assert exactly(s, 2) == b"\5\0" and is_at_end(s)
    s.close()
    claim("another version in the request is closed")
    for methods in (b"", b"\2", b"\1\2\x80"):
        s = connect()
        s.sendall(b"\5" + bytes([len(methods)]) + methods + b"more than was asked for")
        assert exactly(s, 2) == b"\5\xff" and s.recv(1) == b""
        s.close()
    s = connect()
    s.sendall(b"\5\xff" + bytes(range(1, 255)) + b"\0")
    assert exactly(s, 2) == b"\5\0"
    s.close()
    claim("methods without that of the proxy are refused by 255; among 255 of them it is found")

    here = b"\x7f\0\0\1"
    assert code_of(request(here, port, command=2)) == NO_COMMAND
    assert code_of(request(here, port, command=3)) == NO_COMMAND
    assert code_of(request(here, port, command=0)) == NO_COMMAND
    claim("BIND, UDP ASSOCIATE and unknown commands are refused by code 7")
    assert code_of(request(here, port, kind=2)) == NO_TYPE
    assert code_of(request(here, port, kind=0)) == NO_TYPE
    claim("unknown types of an address are refused by code 8, and the client can read that")
    assert code_of(request(b"", port, kind=3)) == FAILED
    assert code_of(request(b"local\0host", port, kind=3)) == FAILED
    claim("an empty name and one with a zero are refused by code 1")
    try:
        socket.getaddrinfo("no-such-name.invalid", port)
        raise AssertionError("a name server that makes up names")
    except socket.gaierror as error:  # without a name server the lookup fails for now
        unknown = NO_HOST if error.errno == socket.EAI_NONAME else FAILED
    assert code_of(request("no-such-name.invalid", port)) == unknown
    assert code_of(request("x" * 255, port)) in (NO_HOST, FAILED)
    claim(f"a name that does not exist is refused by code {unknown}")
    gone = listener()
    free = gone.getsockname()[1]
    gone.close()
    assert code_of(request(here, free)) == REFUSED
    assert code_of(request("localhost", free)) == REFUSED
    claim("a target that refuses is refused by code 5, as an address and as a name")

    s, peer = opened(target)
    s.sendall(b"question")
    s.shutdown(socket.SHUT_WR)
    assert exactly(peer, 8) == b"question" and peer.recv(1) == b""
    peer.sendall(b"answer")
    peer.close()
    assert exactly(s, 6) == b"answer" and s.recv(1) == b""
    s.close()
    claim("the end of one direction is passed on, and the other goes on")
    s, peer = opened(target)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    try:
        assert s.recv(1) != b"", "an end"
        raise AssertionError("bytes")
    except ConnectionResetError:
        pass
    s.close()
    claim("a reset of the target is a reset of the client")


def test_login():
    target = listener()
    port = target.getsockname()[1]

    def login(user, password, version=1):
        s = connect()
        s.sendall(b"\5\2\0\2")
        assert exactly(s, 2) == b"\5\2"
        s.sendall(bytes([version, len(user)]) + user + bytes([len(password)]) + password)
        return s

    s = login(b"me", b"secret")
    assert exactly(s, 2) == b"\1\0"
    s.sendall(request(b"\x7f\0\0\1", port))
    assert answer(s)[0] == OK
    s.close(), target.accept()[0].close()
    claim("the right login is accepted")
    for user, password in ((b"me", b"Secret"), (b"me", b""), (b"", b""), (b"m", b"secret"),
                           (b"me\0", b"secret"), (b"mesecret", b""), (b"x" * 255, b"y" * 255)):
        s = login(user, password)
        assert exactly(s, 2) == b"\1\1" and is_at_end(s), (user, password)
        s.close()
    claim("wrong logins get status 1 and are closed")
    s = login(b"me", b"secret", version=5)
    assert exactly(s, 2) == b"\1\1" and is_at_end(s)
    s.close()
    s = connect()
    s.sendall(GREETING)
    assert exactly(s, 2) == b"\5\xff" and is_at_end(s)
    s.close()
    claim("a client that offers no login is refused by method 255")
    s = connect()
    s.sendall(b"\5\1\2" + request(b"\x7f\0\0\1", port))
    exactly(s, 2)
    s.shutdown(socket.SHUT_WR)
    rest = b""
    while more := s.recv(10):
        rest += more
    assert rest in (b"", b"\1\1"), rest
    s.close()
    target.settimeout(0.2)
    try:
        target.accept()
        raise AssertionError("connected without a login")
    except socket.timeout:
        pass
    claim("a request in place of the login opens nothing")


def test_stalled(limit):
    port = listener().getsockname()[1]
    whole = GREETING + request("localhost", port)
    clients = []
    began = time.monotonic()
    for n in range(len(whole)):
        s = connect()
        s.sendall(whole[:n])
        clients.append(s)
    for n, s in enumerate(clients):
        if n >= len(GREETING):
            assert exactly(s, 2) == b"\5\0"
        assert is_at_end(s)
    assert time.monotonic() - began >= limit
    claim(f"{len(clients)} clients, each of which stops at another byte, are closed at the limit")
    # One byte within each limit: the limit is that of the whole handshake.
    s = connect()
    began = time.monotonic()
    try:
        for byte in whole:
            s.sendall(bytes([byte]))
            time.sleep(limit / 5)
    except OSError:
        pass
    got = b""
    try:
        while more := s.recv(10):
            got += more
    except OSError:
        pass
    assert len(got) <= 2 and time.monotonic() - began >= limit, got
    claim("a client that sends a byte now and then does not extend it")


def test_silent(limit):
    target = listener()
    silent, peer = opened(target)
    lively, peer2 = opened(target)
    end = time.monotonic() + 2 * limit
    while time.monotonic() < end:
        peer2.sendall(b".")
        assert exactly(lively, 1) == b"."
        time.sleep(limit / 8)
    assert select.select([silent], [], [], 0)[0], "a silent relay is open"
    assert is_at_end(silent) and is_at_end(peer)
    claim("a silent relay ends at its limit, and one with traffic in one direction does not")


def test_limit(n):
    target = listener()
    held = [opened(target) for _ in range(n)]
    s = connect()
    s.sendall(GREETING)
    assert not select.select([s], [], [], 0.5)[0], "served beyond the limit"
    held.pop()[0].close()
    assert exactly(s, 2) == b"\5\0"
    claim(f"beyond {n} clients the next one waits, until one has ended")


def test_many(n):
    target = listener()
    pairs = []
    began = time.monotonic()
    for i in range(0, n, 50):  # all of a group at once
        group = [connect() for _ in range(min(50, n - i))]
        for s in group:
            s.sendall(GREETING)
        for s in group:
            assert exactly(s, 2) == b"\5\0"
            s.sendall(request(b"\x7f\0\0\1", target.getsockname()[1]))
        for s in group:
            assert answer(s)[0] == OK
            s.sendall(b"number")
        peers = [target.accept()[0] for _ in group]
        for peer in peers:
            assert exactly(peer, 6) == b"number"
            peer.sendall(b"%06d" % peer.getpeername()[1])
        assert len({exactly(s, 6) for s in group}) == len(group)
        pairs.append((group, peers))
    print(f"ready {n} {time.monotonic() - began:.1f}", flush=True)
    sys.stdin.readline()
    for group, peers in pairs:
        for s in group:
            s.sendall(b"last")
        for peer in peers:
            assert exactly(peer, 4) == b"last"


def test_short(n):
    target = listener()
    for _ in range(n):
        s, peer = opened(target)
        s.sendall(b"x" * 100)
        peer.sendall(exactly(peer, 100))
        exactly(s, 100)
        s.close(), peer.close()


def test_drain(pid):
    target = listener()
    s, peer = opened(target)
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connect().close()
        except ConnectionResetError:  # the listener was closed before it took this connection
            continue
        except ConnectionRefusedError:
            break
        assert time.monotonic() < end, "accepts after SIGTERM"
    s.sendall(b"after the stop")
    assert exactly(peer, 14) == b"after the stop"
    s.close(), peer.close()
    claim("after SIGTERM the listener is closed, and a relay under way goes on to its end")


PORT = int(sys.argv[2])
globals()["test_" + sys.argv[1]](*map(int, sys.argv[3:]))
