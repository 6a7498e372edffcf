#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs both modes of examples/programs/shipper.c on a directory of logs.
#
#   tests/tools/programs/shipper.sh DIRECTORY     with the program
set -eu
shipper=$1/shipper
. "$(dirname "$0")/peers.sh"
# An address of its own: a shipper without a collector cannot connect to itself.
host=127.77.1.1
logs=$work/logs
app=$logs/app.log
all=$work/all
state=$work/state
mkdir "$logs"

collect() { start "$shipper" collect "$host:$1" "$all" 2>"$work/collector"; }
ship() {
    "$shipper" ship "$host:$port" "$state" "$logs" '*.log*' >"$work/shipped" 2>"$work/log" &
    is_peer
    ship=$peer
    until_true has "$work/log" connected
}
# same TITLE WANT GOT
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }
# ended STATUS PID  Waits for a process, which has ended with the status.
ended() {
    status=0
    wait "$2" 2>"$work/killed" || status=$?
    [ "$status" -eq "$1" ] || fail "status $status, not $1"
}
# append FROM TO FILE  Numbered lines.
append() { seq -f '%07.0f some text of a line' "$1" "$2" >>"$3"; }
# arrived N  N lines have come, and they are those with the numbers 1 to N, each once.
arrived() {
    until_true lines "$all" "$1"
    cut -f 2 "$all" | sort | cut -d ' ' -f 1 | cmp - "$work/numbers.$1" ||
        fail 'lines are missing, or came twice'
}
numbers() { seq -f %07.0f 1 "$1" >"$work/numbers.$1"; }
# saved FILE...  The state has the size of each file as its offset.
saved() {
    for file; do has "$state" "^[0-9]* $(stat -c '%i %s' "$file") " || return 1; done
}

append 1 1000 "$app"
collect 0
ship
printf '0001001 so' >>"$app" # a line in two parts
until_true lines "$all" 1000
printf 'me text of a line\n' >>"$app"
for n in 1 2 3 4 5 6 7 8 9; do append "${n}002" "$((n + 1))001" "$app"; done
numbers 10001
arrived 10001
sed 's/^/app.log	/' "$app" | cmp - "$all" || fail 'not in order'
claim 'lines that are appended arrive once and in order'

began=$(date +%s)
for n in 10002 10003 10004; do
    append "$n" "$n" "$logs/$n.log"
    until_true lines "$all" "$n"
done
# A listing without a cause comes every 10 s, so three of them would take 20 s or more.
[ $(($(date +%s) - began)) -lt 18 ] || fail 'new files are found late'
claim 'new files are found by their events'

# As logrotate does it, with an application that writes to the old file until it opens the new one.
number=10005
for n in 1 2 3 4 5; do
    exec 3>>"$app"
    append "$number" "$((number + 999))" "$app"
    mv "$app" "$app.$n"
    seq -f '%07.0f written after the rename' "$((number + 1000))" "$((number + 1009))" >&3
    append "$((number + 1010))" "$((number + 1999))" "$app"
    exec 3>&-
    number=$((number + 2000))
done
numbers 20004
arrived 20004
claim 'five rotations lose nothing, and nothing arrives twice'

stop # the collector
append 20005 25004 "$app"
mv "$app" "$app.6"
append 25005 29004 "$app"
append 29005 30004 "$logs/deleted.log"
until_true has "$work/log" 'deleted.log: followed'
deleted=$(stat -c '%i %s' "$logs/deleted.log")
rm "$logs/deleted.log"
has "$work/log" 'next try in' || fail 'there was a collector'
collect "$port"
numbers 30004
arrived 30004
claim 'lines that were written while there was no collector arrive, also of a deleted file'

until_true saved "$logs"/*
until_true has "$state" "^[0-9]* $deleted "
kill -KILL "$ship"
ended 137 "$ship"
append 30005 31004 "$app"
mv "$app" "$app.7"
append 31005 32004 "$app"
ship
numbers 32004
arrived 32004
sed -n 's/: followed from offset 0$//p' "$work/log" >"$work/new"
same 'read from their start' app.log "$(cat "$work/new")"
same 'lines of the deleted file' 1000 "$(grep -c '^deleted.log' "$all")"
claim 'a shipper that was killed goes on where its state file says, also behind a rotation'

: >"$app" # truncated, as by copytruncate
append 32005 33004 "$app"
numbers 33004
arrived 33004
claim 'a file that was truncated is read from its start'

kill -STOP "$ship"
python3 - "$logs" "$(cat /proc/sys/fs/inotify/max_queued_events)" <<'END'
import os, sys
for i in range(int(sys.argv[2]) // 2 + 100): # two events each
    os.close(os.open(sys.argv[1] + "/other", os.O_CREAT | os.O_WRONLY))
    os.unlink(sys.argv[1] + "/other")
END
append 33005 34004 "$logs/late.log"
kill -CONT "$ship"
numbers 34004
arrived 34004
until_true has "$work/log" 'events were lost'
claim 'after lost events the directory is listed, and the new file is followed'

memory() { awk '/VmHWM/ { print $2 }' "/proc/$ship/status"; }
before=$(memory)
kill -STOP "$server" # the collector takes nothing
append 34005 434004 "$app"
cat "$app" >"$work/read" # takes as long as the shipper would need to read all of it
! saved "$app" || fail 'the collector was not stopped'
kill -CONT "$server"
numbers 434004
arrived 434004
grown=$(($(memory) - before))
[ "$grown" -lt 1000 ] || fail "the shipper has grown by $grown KiB"
claim 'a backlog of 12 MB behind a collector that stalls costs the shipper no memory'

long=$(head -c 40000 /dev/zero | tr '\0' x)
echo "$long" >>"$app"
until_true lines "$all" 434007
same 'a long line' '16384 16384 7232 ' \
    "$(tail -n 3 "$all" | cut -f 2 | awk '{ printf "%d ", length }')"
printf '\377\377\377\377 no record' | timeout 20 nc "$host" "$port"
printf '\0\0\0\002no' | timeout 20 nc "$host" "$port"
until_true has "$work/collector" EMSGSIZE
until_true has "$work/collector" EBADMSG
claim 'a long line arrives in pieces; the collector ends connections that send no records'

append 1 200000 "$logs/crash.log"
until_true sh -c '[ "$(wc -l <"$0")" -gt 440000 ]' "$all"
kill -KILL "$ship"
ended 137 "$ship"
ship
until_true has "$all" '^crash.log	0200000 '
append 1 200000 "$work/want"
grep '^crash.log	' "$all" | cut -f 2 | sort -u | cmp - "$work/want" || fail 'a gap'
claim 'nothing is lost if the shipper is killed while it sends'

append 200001 201000 "$logs/crash.log"
until_true saved "$logs"/*
echo 'one saved line' >>"$app"
until_true saved "$app"
echo 'one line behind it' >>"$app"
until_true has "$all" 'one line behind it'
kill -TERM "$ship" # before the next second
ended 0 "$ship"
saved "$logs"/* || fail 'the stop has not saved the state'
before=$(wc -l <"$all")
ship
echo 'the last line' >>"$app"
until_true has "$all" 'the last line$'
lines "$all" $((before + 1)) || fail 'lines came twice'
kill -TERM "$ship"
ended 0 "$ship"
has "$work/shipped" '^sent 1 lines' || fail 'other lines were sent'
stop
claim 'after a stop in order nothing is sent twice'
