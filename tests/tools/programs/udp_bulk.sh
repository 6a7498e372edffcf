#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the two sides of examples/programs/udp_bulk.c against each other on loopback: whole files,
# files with losses, and a side that is missing, silent or killed.
#   tests/tools/programs/udp_bulk.sh DIRECTORY     with the program, which make builds
set -eu
bulk=$1/udp_bulk
. "$(dirname "$0")/../../../bench/tools/server.sh"
sender=
cleanup() {
    for process in $server $sender; do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}
said() { echo "udp_bulk: $*"; }
ended=0
# ends PROCESS  Waits for it, and sets $ended to its exit status.
ends() {
    ended=0
    wait "$1" 2>/dev/null || ended=$?
}
# transfer BYTES OPTION...  The receiver has the options.
transfer() {
    head -c "$1" /dev/urandom >"$work/file"
    shift
    rm -f "$work/copy"
    start "$bulk" recv "$@" "$address:0" "$work/copy"
    "$bulk" send "$work/file" "$address:$port" >"$work/sender" || fail "send: status $?"
    ends "$server"
    server=
    [ "$ended" -eq 0 ] || fail "recv: status $ended"
    [ "$(sha256sum <"$work/file")" = "$(sha256sum <"$work/copy")" ] || fail 'the copy differs'
    [ ! -e "$work/copy.part" ] || fail 'a file was left'
}
# fails_with CLAIM TEXT  The sender ends within 15 s, with an error.
fails_with() {
    ! timeout 15 "$bulk" send "$work/file" "127.0.0.1:$port" >"$work/sender" 2>"$work/error" ||
        fail "the sender has ended without an error: $1"
    grep -q "$2" "$work/error" || fail "$1: wanted '$2', got '$(cat "$work/error")'"
    said "$1"
}

address=127.0.0.1
for bytes in 0 1 1399 1400 1401 61600 3000000; do transfer "$bytes"; done
said 'files of 0 bytes to 3 MB arrive with equal checksums'
transfer 268435456
said "256 MiB arrive: $(sed -n 's/.* in //p' "$work/sender")"
for one_in in 50 4; do
    transfer 10000000 -d "$one_in"
    dropped=$(value dropped "$work/server")
    again=$(value again "$work/sender")
    [ "$dropped" -gt $((7143 / one_in / 2)) ] || fail "only $dropped datagrams were dropped"
    silences=$(value silences "$work/sender")
    [ "$silences" -le $((dropped / 150 + 1)) ] || fail "losses were found by $silences silences"
    [ "$again" -ge $((dropped - 20)) ] || fail "$dropped were dropped and $again sent again"
    said "10 MB arrive, one datagram in $one_in is dropped: $dropped dropped, $again sent again"
done
if [ -e /proc/net/if_inet6 ]; then
    address='[::1]'
    transfer 3000000
    said '3 MB arrive over IPv6'
fi

start "$bulk" recv 127.0.0.1:0 "$work/copy" 2>"$work/stopped"
kill -STOP "$server"
fails_with 'a sender ends whose receiver is silent' ETIMEDOUT
kill -CONT "$server"
kill -TERM "$server"
ends "$server"
server=
[ "$ended" -eq 1 ] || fail "the receiver ended with status $ended"
[ ! -e "$work/copy.part" ] || fail 'a stopped receiver leaves a file'
said 'a receiver that is stopped leaves no file'
fails_with 'a sender ends that has no receiver' ECONNREFUSED

# Starts both sides, $server and $sender, and waits until the receiver has written something.
begin_transfer() {
    start "$bulk" recv -d 4 127.0.0.1:0 "$work/copy" 2>"$work/stopped"
    "$bulk" send "$work/file" "127.0.0.1:$port" >"$work/sender" 2>"$work/error" &
    sender=$!
    until [ -s "$work/copy.part" ]; do
        kill -0 "$sender" 2>/dev/null || fail 'the sender has ended early'
    done
}

# What is lost is read once more: if the file has changed since, the copy is neither of both.
truncate -s 60000000 "$work/file"
echo old >"$work/copy"
begin_transfer
head -c 60000000 /dev/zero | tr '\0' x | dd of="$work/file" bs=65536 conv=notrunc 2>/dev/null
for process in $sender $server; do
    ends "$process"
    [ "$ended" -eq 1 ] || fail "a side whose file has changed ended with status $ended"
done
sender= server=
grep -q EBADMSG "$work/error" && grep -q EBADMSG "$work/stopped" || fail 'the sums are equal'
[ "$(cat "$work/copy")" = old ] && [ ! -e "$work/copy.part" ] || fail 'a wrong copy was kept'
said 'both sides end with an error if the checksums differ, and the copy is dropped'

# A side is killed in the middle of a transfer.
for killed in sender receiver; do
    truncate -s 268435456 "$work/file"
    echo old >"$work/copy"
    begin_transfer
    if [ "$killed" = sender ]; then
        kill -KILL "$sender"
        ends "$sender"
        sender=
        ends "$server"
        server=
        [ "$ended" -eq 1 ] || fail "the receiver ended with status $ended"
        [ ! -e "$work/copy.part" ] || fail 'a part of a file was left'
        [ "$(cat "$work/copy")" = old ] || fail 'a part of a file has its name'
    else
        kill -KILL "$server"
        ends "$server"
        server=
        ends "$sender"
        sender=
        [ "$ended" -eq 1 ] || fail "the sender ended with status $ended"
        grep -q ECONNREFUSED "$work/error" || fail "not ECONNREFUSED: $(cat "$work/error")"
    fi
    said "the other side ends, with an error, when the $killed is killed"
done
