#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/broker.c with nc and python3 as its clients.
#
#   tests/tools/programs/broker.sh DIRECTORY     with the program
set -eu
bin=$1
. "$(dirname "$0")/peers.sh"

# client N  The Nth client: $work/in.N is its input, $work/out.N its output.
client() {
    mkfifo "$work/in.$1"
    timeout 60 nc -N 127.0.0.1 "$port" <"$work/in.$1" >"$work/out.$1" &
    is_peer
}
# ask TEXT  Sends the text, prints the answers, whose ends are replaced by a comma.
ask() { printf "$1" | timeout 20 nc -N 127.0.0.1 "$port" | tr '\n' ,; }
# same TITLE WANT GOT
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }
x() { head -c "$1" /dev/zero | tr '\0' x; }

# A subscriber that never reads, and a publisher: it is disconnected, see the end.
cat >"$work/silent.py" <<'END'
import socket, sys, time
def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(30)
    s.connect(("127.0.0.1", int(sys.argv[1])))
    return s
silent, other = connect(), connect()
silent.sendall(b"sub flood\n")
while True: # until it is a subscriber, and until it is none any more
    other.sendall(b"pub flood " + b"x" * 500 + b"\n")
    if other.recv(8) == b"ok 1\n": break
began = time.monotonic()
while True:
    other.sendall(b"pub flood " + b"x" * 500 + b"\n")
    if other.recv(8) == b"ok 0\n": break
print("%.1f" % (time.monotonic() - began))
END

start "$bin/broker" 127.0.0.1:0
timeout 50 python3 "$work/silent.py" "$port" >"$work/silent" &
is_peer
silent=$peer

client 1
exec 3>"$work/in.1"
echo 'sub news' >&3
until_true has "$work/out.1" '^ok$'
client 2
exec 4>"$work/in.2"
printf 'sub news\nsub other\n' >&4
until_true lines "$work/out.2" 2
same 'a topic with two subscribers' 'ok 2,ok 1,ok 0,' \
    "$(ask 'pub news hello all\npub other a  b \npub none x\n')"
echo 'unsub news' >&4
until_true lines "$work/out.2" 5
same 'a topic with one subscriber' 'ok 1,' "$(ask 'pub news for one\r\n')"
until_true has "$work/out.1" '^msg news for one$'
same 'the first' 'ok,msg news hello all,msg news for one,' "$(tr '\n' , <"$work/out.1")"
same 'the second' 'msg news hello all,msg other a  b ,ok,ok,ok,' \
    "$(sort "$work/out.2" | tr '\n' ,)" # two topics have no common order
claim 'each subscriber gets the messages of its topics, and no other client gets them'

same 'lines that are too long' 'err line too long,err line too long,ok 1,' \
    "$(ask "pub news $(x 600)\n$(x 100000)\npub news after a long line\n")"
same 'the longest text' 'ok 1,err text too long,' \
    "$(ask "pub news $(x 512)\npub news $(x 513)\n")"
until_true has "$work/out.1" '^msg news after a long line$'
until_true has "$work/out.1" '^msg news x\{512\}$'
same 'refusals' 'err unknown command,err a topic,err a topic,ok,' \
    "$(ask "shout news\nsub\nsub $(x 65)\nsub $(x 64)\n" | sed "s/topic[^,]*/topic/g")"
same 'many subscriptions' '16 ok, 1 err too many subscriptions,' \
    "$(ask "$(seq 17 | sed 's/.*/sub t&\\n/' | tr -d '\n')" | tr , '\n' | uniq -c |
        sed 's/^ *//' | tr '\n' , | sed 's/,1/, 1/')"
same 'half a command' 'ok 1,' "$(ask 'pub news whole\npub news half')"
until_true has "$work/out.1" '^msg news whole$'
! has "$work/out.1" half || fail 'half a command was executed'
claim 'a line that is too long is an error for its client alone, which goes on'

# The clients that are slow.
cat >"$work/client.py" <<'END'
import socket, sys
def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20)
    s.connect(("127.0.0.1", int(sys.argv[1])))
    return s
def subscribe(s, topic):
    s.sendall(b"sub %s\n" % topic)
    got = b""
    while got != b"ok\n": got += s.recv(3)
END
export PYTHONPATH="$work" PYTHONDONTWRITEBYTECODE=1
# memory  Most KiB that the broker has used.
memory() { awk '/VmHWM/ { print $2 }' "/proc/$server/status"; }
before=$(memory)
python3 - "$port" <<'END' || fail 'the slow subscriber'
import sys
from client import connect, subscribe
slow, publisher = connect(), connect()
subscribe(slow, b"slow")
got, rounds, each = b"", 60, 200
for i in range(rounds):
    publisher.sendall(b"".join(b"pub slow %06d %s\n" % (i * each + n, b"x" * 480)
                               for n in range(each)))
    answer = b""
    while answer.count(b"\n") < each: answer += publisher.recv(65536)
    if answer != b"ok 1\n" * each: sys.exit("the publisher was refused: %r" % answer[:100])
    got += slow.recv(4096) # it is slow, but not dead
last = b"msg slow %06d" % (rounds * each - 1)
while not (last in got and got.endswith(b"\n")): got += slow.recv(65536)
numbers, lost, times = [], 0, 0
for line in got.splitlines():
    word = line.split(b" ")
    if word[0] == b"lost": lost += int(word[2]); times += 1
    elif len(word[3]) == 480: numbers.append(int(word[2]))
if times == 0: sys.exit("nothing was lost: the subscriber was not slow")
if numbers != sorted(set(numbers)): sys.exit("not in order")
if len(numbers) + lost != rounds * each: sys.exit("%d messages, %d lost" % (len(numbers), lost))
print("broker: a slow subscriber gets %d of %d messages, and is told of %d lost ones, %d times" %
      (len(numbers), rounds * each, lost, times))
END
grown=$(($(memory) - before))
[ "$grown" -lt 1000 ] || fail "6 MB of messages for a slow subscriber: $grown KiB more"
claim 'the memory of the broker does not grow with the messages of a slow subscriber'

wait "$silent" || fail 'the subscriber that never reads'
awk '{ exit !($1 > 4 && $1 < 25) }' "$work/silent" || fail "after $(cat "$work/silent") s"
claim "a subscriber that never reads is disconnected, after $(cat "$work/silent") s"

python3 - "$port" "$server" <<'END' || fail 'the drain'
import os, signal, socket, sys, time
from client import connect, subscribe
reader, publisher = connect(), connect()
subscribe(reader, b"late")
n = 1000
publisher.sendall(b"".join(b"pub late %06d %s\n" % (i, b"x" * 480) for i in range(n)))
answer = b""
while answer.count(b"\n") < n: answer += publisher.recv(65536)
os.kill(int(sys.argv[2]), signal.SIGTERM)
began = time.monotonic()
while publisher.recv(100): pass # the end of the stream: the broker is stopping
try:
    connect()
    sys.exit("a connection was accepted in the stop")
except ConnectionRefusedError: pass
publisher.close()
got = b""
while more := reader.recv(65536): got += more
if time.monotonic() - began > 8: sys.exit("the broker was stopped by its time limit")
lines = [line.split(b" ") for line in got.splitlines()]
numbers = [int(word[2]) for word in lines if word[0] == b"msg"]
lost = sum(int(word[2]) for word in lines if word[0] == b"lost")
if numbers[-1] != n - 1 or len(numbers) + lost != n or not got.endswith(b"x\n"):
    sys.exit("%d messages up to %d, %d lost" % (len(numbers), numbers[-1], lost))
END
exec 3>&- 4>&-
stop
claim 'a stop refuses connections, and each subscriber gets the rest of its messages'

start sh -c 'ulimit -n 40; exec "$0" 127.0.0.1:0' "$bin/broker"
python3 - "$port" <<'END' || fail 'many clients'
import socket, sys
clients = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) for i in range(60)]
for s in clients: s.sendall(b"pub none x\n")
for s in clients[:20]: # the broker has descriptors for these, but not for all
    if s.recv(10) != b"ok 0\n": sys.exit("no reply")
clients[59].settimeout(0.5)
try:
    clients[59].recv(10)
    sys.exit("the broker is not out of descriptors")
except TimeoutError: pass
clients[59].settimeout(20)
for i, s in enumerate(clients[20:]):
    clients[i].close()
    if s.recv(10) != b"ok 0\n": sys.exit("no reply after the wait")
END
stop
claim 'clients for which there is no descriptor wait until others leave'
