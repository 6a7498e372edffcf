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
# saved  The state has the size of app.log as its offset.
saved() { has "$state" "^[0-9]* $(stat -c '%i %s' "$app") "; }

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

# What logrotate does; and the application writes to the old file until it opens the new one.
number=10002
for n in 1 2 3 4 5; do
    exec 3>>"$app"
    append "$number" "$((number + 999))" "$app"
    mv "$app" "$app.$n"
    seq -f '%07.0f written after the rename' "$((number + 1000))" "$((number + 1009))" >&3
    append "$((number + 1010))" "$((number + 1999))" "$app"
    exec 3>&-
    number=$((number + 2000))
done
numbers 20001
arrived 20001
claim 'five rotations lose nothing, and nothing arrives twice'

stop # the collector
append 20002 25001 "$app"
mv "$app" "$app.6"
append 25002 30001 "$app"
until_true has "$work/log" 'next try in'
collect "$port"
numbers 30001
arrived 30001
claim 'lines that were written while there was no collector arrive without a gap'

until_true saved
kill -KILL "$ship"
ended 137 "$ship"
append 30002 31001 "$app"
mv "$app" "$app.7"
append 31002 32001 "$app"
ship
numbers 32001
arrived 32001
sed -n 's/: followed from offset 0$//p' "$work/log" >"$work/new"
same 'read from their start' app.log "$(cat "$work/new")"
claim 'a shipper that was killed goes on where its state file says, also behind a rotation'

: >"$app" # truncated, as by copytruncate
append 32002 33001 "$app"
numbers 33001
arrived 33001
claim 'a file that was truncated is read from its start'

kill -STOP "$ship"
python3 - "$logs" "$(cat /proc/sys/fs/inotify/max_queued_events)" <<'END'
import os, sys
for i in range(int(sys.argv[2]) // 2 + 100): # two events each
    os.close(os.open(sys.argv[1] + "/other", os.O_CREAT | os.O_WRONLY))
    os.unlink(sys.argv[1] + "/other")
END
append 33002 34001 "$logs/late.log"
kill -CONT "$ship"
numbers 34001
arrived 34001
until_true has "$work/log" 'events were lost'
claim 'after lost events the directory is listed, and the new file is followed'

memory() { awk '/VmHWM/ { print $2 }' "/proc/$ship/status"; }
before=$(memory)
kill -STOP "$server" # the collector takes nothing
append 34002 434001 "$app"
cat "$app" >"$work/read" # and meanwhile the shipper has the time to read all of it
! saved || fail 'the collector was not stopped'
kill -CONT "$server"
numbers 434001
arrived 434001
grown=$(($(memory) - before))
[ "$grown" -lt 1000 ] || fail "the shipper has grown by $grown KiB"
claim 'a backlog of 12 MB behind a collector that stalls costs the shipper no memory'

long=$(head -c 40000 /dev/zero | tr '\0' x)
echo "$long" >>"$app"
until_true lines "$all" 434004
same 'a long line' '16384 16384 7232 ' \
    "$(tail -n 3 "$all" | cut -f 2 | awk '{ printf "%d ", length }')"
printf '\377\377\377\377 no record' | timeout 20 nc "$host" "$port"
printf '\0\0\0\002no' | timeout 20 nc "$host" "$port"
until_true has "$work/collector" EMSGSIZE
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
until_true has "$all" '^crash.log	0201000 '
kill -TERM "$ship"
ended 0 "$ship"
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
