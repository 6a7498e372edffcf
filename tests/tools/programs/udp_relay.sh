#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/udp_relay.c between socat and socat, and between iperf3 and iperf3.
#   tests/tools/programs/udp_relay.sh DIRECTORY     with the program, which make builds
set -eu
relay=$1/udp_relay
. "$(dirname "$0")/../../../bench/tools/server.sh"
target= clients=
cleanup() {
    for process in $server $target $clients; do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}
said() { echo "udp_relay: $*"; }
# until_is COMMAND...  Repeats a command until it succeeds.
until_is() {
    for _ in $(seq 200); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "not within 20 s: $*"
}
target_stop() {
    kill "$target" 2>/dev/null || :
    wait "$target" 2>/dev/null || :
    target=
}
a_port() { echo $((20000 + $(od -An -N2 -tu2 /dev/urandom) % 30000)); }

# client N  A client that stays; its datagrams are the lines of the Nth pipe.
client() {
    mkfifo "$work/in.$1"
    socat -b 65507 - "UDP4:127.0.0.1:$port" <"$work/in.$1" >"$work/out.$1" &
    clients="$clients $!"
}
clients_stop() {
    for process in $clients; do
        kill "$process" 2>/dev/null || :
        wait "$process" 2>/dev/null || :
    done
    clients=
}
# Sends the words of the first client until they come back.
is_echoed() {
    echo "$1" >&4
    sleep 0.1
    grep -q "$1" "$work/out.1"
}
has() { grep -q "$2" "$work/out.$1"; }
has_bytes() { [ "$(wc -c <"$work/out.$1")" -ge "$2" ]; }
n_fds() { find "/proc/$server/fd" -type l | wc -l; }
has_fds() { [ "$(n_fds)" -eq "$1" ]; }

# The relay begins without its target, an echo of datagrams.
echoes() {
    while :; do
        target_port=$(a_port)
        start "$relay" 127.0.0.1:0 "127.0.0.1:$target_port" 1
        fds=$(n_fds)
        client 1
        exec 4>"$work/in.1"
        echo 'too early' >&4
        until_is more_fds
        socat -b 65507 "UDP4-RECVFROM:$target_port,bind=127.0.0.1,fork" EXEC:'cat -' &
        target=$!
        sleep 0.1
        kill -0 "$target" 2>/dev/null && break # the port was free
        stop
    done
    until_is is_echoed 'words of the first'
    said 'a relay that begins before its target passes a datagram of socat, and the answer of socat'
    client 2
    exec 5>"$work/in.2"
    echo 'words of the second' >&5
    until_is has 2 'words of the second'
    echo 'more of the first' >&4
    until_is has 1 'more of the first'
    ! has 1 second && ! has 2 first || fail 'a client got the answer of another one'
    said 'each of two clients gets its own answers'
    head -c 60000 /dev/urandom >"$work/large"
    : >"$work/out.3"
    socat -b 65507 -t 20 "OPEN:$work/large,rdonly!!CREATE:$work/out.3" "UDP4:127.0.0.1:$port" &
    clients="$clients $!"
    until_is has_bytes 3 60000
    cmp "$work/out.3" "$work/large" || fail 'a large datagram differs'
    said 'a datagram of 60000 bytes comes back'
    until_is has_fds "$fds"
    said 'the sockets of silent clients are closed'
    until_is is_echoed 'words after a silence'
    said 'a client that was silent gets its answers again'
    clients_stop
    exec 4>&- 5>&-
    stop
    target_stop
}
# More clients than the relay has buckets.
many() {
    mkfifo "$work/port"
    python3 - 300 3<"$work/port" >"$work/many" <<'END' &
import os, select, socket, sys
target = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
target.bind(("127.0.0.1", 0))
print("port", target.getsockname()[1], flush=True)
relay = ("127.0.0.1", int(os.read(3, 100)))
clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(int(sys.argv[1]))]
for round in b"first", b"second":
    for number, client in enumerate(clients):
        client.sendto(b"%s %d" % (round, number), relay)
        data, address = target.recvfrom(100)
        target.sendto(data, address)
    for number, client in enumerate(clients):
        assert select.select([client], [], [], 10)[0], "no answer"
        assert client.recv(100) == b"%s %d" % (round, number), "not its own answer"
print("answers", 2 * len(clients))
END
    target=$!
    exec 4>"$work/port"
    until_is grep -q port "$work/many"
    start "$relay" 127.0.0.1:0 "127.0.0.1:$(value port "$work/many")"
    echo "$port" >&4
    exec 4>&-
    wait "$target" || fail 'an answer of 300 clients'
    target=
    said "$(value answers "$work/many") datagrams of 300 clients are answered, each to its client"
    stop
}
more_fds() { [ "$(n_fds)" -gt "$fds" ]; }

# measure NAME OPTION...  The datagrams of iperf3, of 1200 bytes at 4 Mbit/s for 3 s.
measure() {
    name=$1
    shift
    timeout 40 iperf3 --json -c 127.0.0.1 -p "$port" -u -b 4M -l 1200 -t 3 "$@" >"$work/iperf3" ||
        fail "iperf3: $(cat "$work/iperf3")"
    python3 - "$work/iperf3" "$name" <<'END' || fail 'iperf3 has lost datagrams'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
sent, got = end["sum_sent"], end["sum_received"]
lost = got["lost_packets"]
assert sent["packets"] > 1000, sent
assert lost <= sent["packets"] * 0.02, got
assert abs(got["packets"] - sent["packets"]) <= sent["packets"] * 0.02, end
print("udp_relay: %s: %d datagrams sent, %d counted, %d lost"
      % (sys.argv[2], sent["packets"], got["packets"], lost))
END
}
iperf() {
    while :; do
        target_port=$(a_port)
        : >"$work/target"
        iperf3 -s --forceflush -B 127.0.0.1 -p "$target_port" >"$work/target" 2>&1 &
        target=$!
        until grep -q listening "$work/target" || ! kill -0 "$target" 2>/dev/null; do
            sleep 0.1
        done
        ! grep -q listening "$work/target" || break
    done
    start "$relay" 127.0.0.1:0 "127.0.0.1:$target_port"
    measure 'iperf3 -u'
    measure 'iperf3 -u -R' -R
    timeout 40 iperf3 -c 127.0.0.1 -p "$port" -n 100M >"$work/iperf3" ||
        fail "iperf3: $(cat "$work/iperf3")"
    said 'iperf3 sends 100 MB over TCP'
    stop
    target_stop
}

echoes
many
iperf
