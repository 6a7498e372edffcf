# SPDX-License-Identifier: MIT OR 0BSD
"""Clients and servers that dig and dnsmasq cannot play, for dns.sh.

  malformed PORT   sends malformed queries over UDP and prints "sent N"
  noise PORT       sends queries with random bytes over UDP, and broken ones over TCP
  burst PORT NAME  sends equal queries at once, in different spellings, and checks each answer
  crowd PORT       holds more connections than the forwarder has descriptors until its input ends,
                   and prints "open" first
  silent           a server that never answers; prints "port N", as the next one does
  liar             a server that sends wrong answers before each right one; names in "no" do not
                   exist, as a record says that lives for a second; the answer for "big" is longer
                   than the forwarder has asked for
"""
import errno
import random
import socket
import struct
import sys

BURST = 200


def name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".")) + b"\0"


def query(text, number=7, flags=0x0100, kind=1, extra=b"", n_extra=0):
    return struct.pack(">6H", number, flags, 1, 0, 0, n_extra) + name(text) + struct.pack(
        ">2H", kind, 1) + extra


def record(kind, ttl, data, owner=b"\xc0\x0c"):
    return owner + struct.pack(">2HIH", kind, 1, ttl, len(data)) + data


OPT = b"\0" + struct.pack(">2HIH", 41, 1232, 0, 0)


def malformed():
    good = query("one.test", extra=OPT, n_extra=1)
    head = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0)
    tail = struct.pack(">2H", 1, 1)
    packets = [good[:n] for n in range(len(good))]
    packets += [good + b"\0", query("one.test", extra=OPT + OPT, n_extra=2)]
    packets += [struct.pack(">6H", 7, flags, n, n_answers, 0, 0) + good[12:22]
                for flags, n, n_answers in ((0x8100, 1, 0), (0x0100, 0, 0), (0x0100, 2, 0),
                                            (0x0100, 1, 1))]
    packets += [head + b"\xc0\x0c" + tail,                     # a name that points to itself
                head + b"\x03abc\xc0\x0c" + tail,
                head + b"\xff\xff" + tail,                     # beyond the end
                head + b"\x40" + b"a" * 64 + b"\0" + tail,     # a label of an unknown kind
                head + (b"\x3f" + b"a" * 63) * 4 + b"\0" + tail,  # a name of 257 bytes
                query("one.test", extra=b"\0" * 2000)]
    return packets


def send_noise(port):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(("127.0.0.1", port))
    noise = random.Random(1)
    good = bytearray(query("one.test", extra=OPT, n_extra=1))
    for _ in range(3000):
        packet = bytearray(good)
        for _ in range(noise.randrange(1, 6)):
            packet[noise.randrange(len(packet))] = noise.randrange(256)
        udp.send(packet)
    for data in (b"\0", b"\0\0", b"\0\x05abcde", b"\xff\xff" + b"x" * 3000,
                 struct.pack(">H", len(good)) + good[:20],
                 struct.pack(">H", 20) + good[:20], b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), 10) as tcp:
            try:
                tcp.sendall(data)
                tcp.shutdown(socket.SHUT_WR)
                assert tcp.recv(10) == b"", data
            except (ConnectionResetError, BrokenPipeError):  # input that was not read
                pass
            except OSError as error:  # the same, before the shutdown
                assert error.errno == errno.ENOTCONN


def burst(port, text):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(("127.0.0.1", port))
    udp.settimeout(20)
    noise = random.Random(2)
    asked = {}
    for number in range(BURST):
        spelling = "".join(noise.choice((c.lower(), c.upper())) for c in text)
        asked[number] = query(spelling, number)
        udp.send(asked[number])
    answers = set()
    while asked:
        got = udp.recv(4096)
        number = struct.unpack(">H", got[:2])[0]
        sent = asked.pop(number)
        assert got[12:len(sent)] == sent[12:], "the answer has another spelling"
        assert got[3] & 15 == 0 and got[7] == 1, "no answer"
        answers.add(got[-4:])
    assert len(answers) == 1, answers
    print("answers", BURST)


def crowd(port):
    held = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(40)]
    print("open", flush=True)
    sys.stdin.read()
    del held


def serve(is_silent):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    print("port", udp.getsockname()[1], flush=True)
    while is_silent:
        udp.recvfrom(4096)
    while True:
        asked, client = udp.recvfrom(4096)
        number, end = struct.unpack(">H", asked[:2])[0], asked.index(b"\0", 12) + 5
        question = asked[12:end]
        right = record(1, 300, b"\x7f\0\0\x21")
        wrong = record(1, 300, b"\x7f\0\0\x66")

        def head(number, flags, *counts):
            return struct.pack(">6H", number, flags, *counts)
        lies = [head(number ^ 1, 0x8180, 1, 1, 0, 0) + question + wrong,
                head(number, 0x0180, 1, 1, 0, 0) + question + wrong,
                head(number, 0x8180, 1, 1, 0, 0) + name("other.test") + question[-4:] + wrong,
                head(number, 0x8180, 1, 1, 0, 0) + question[:-4] + b"\0\x1c\0\1" + wrong,
                head(number, 0x8180, 1, 9, 0, 0) + question + wrong,
                head(number, 0x8180, 1, 1, 0, 0) + question + b"\xc0\xff" + wrong[2:],
                head(number, 0x8180, 1, 1, 0, 0) + question + wrong[:-1],
                head(number, 0x8180, 0, 0, 0, 0), b"", b"\0", asked]
        for lie in lies:
            udp.sendto(lie, client)
        if question[1:3].lower() == b"no":
            soa = b"\0\0" + struct.pack(">5I", 1, 1200, 180, 1209600, 1)
            udp.sendto(head(number, 0x8183, 1, 0, 1, 0) + question + record(6, 300, soa), client)
        elif question[1:4] == b"big":
            udp.sendto(head(number, 0x8180, 1, 90, 0, 0) + question + right * 90, client)
        else:  # the OPT record lies between two others
            udp.sendto(head(number, 0x8180, 1, 1, 0, 3) + question + right + wrong + OPT + wrong,
                       client)


def main():
    if sys.argv[1] == "malformed":
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.connect(("127.0.0.1", int(sys.argv[2])))
        print("sent", sum(udp.send(packet) >= 0 for packet in malformed()))
    elif sys.argv[1] == "noise":
        send_noise(int(sys.argv[2]))
    elif sys.argv[1] == "burst":
        burst(int(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "crowd":
        crowd(int(sys.argv[2]))
    else:
        serve(sys.argv[1] == "silent")


main()
