#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/serial.c on a pair of terminals, with nc and python3 as its clients.
#
#   tests/tools/programs/serial.sh DIRECTORY     with the program
set -eu
bin=$1
. "$(dirname "$0")/peers.sh"

# The device and the line: two ends of one cable. Descriptor 9 is a second opener of the line, by
# which the line survives the gateway; $before is the state of the line.
cable() {
    socat pty,raw,echo=0,link="$work/device" pty,raw,echo=0,mode=666,link="$work/new" \
        2>"$work/socat" &
    is_peer
    cable=$peer
    until_true test -e "$work/new" -a -e "$work/device"
    exec 9<>"$work/new"
    stty "$@" <&9
    before=$(stty -g <&9)
    mv "$work/new" "$work/line" # the gateway may open it from now on
}
# client N  The Nth client: $work/in.N is its input, $work/out.N its output.
client() {
    mkfifo "$work/in.$1"
    timeout 60 nc 127.0.0.1 "$port" <"$work/in.$1" >"$work/out.$1" &
    is_peer
}
# other_user COMMAND...  As a user without privileges, for whom the system keeps the line exclusive.
other_user() {
    [ "$(id -u)" -ne 0 ] || set -- setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    "$@"
}
opener='exec 8<>"$0"'

cable 9600 icanon echo
start "$bin/serial" 127.0.0.1:0 "$work/line" 57600 2>"$work/log"
until_true has "$work/log" 'is open'

[ "$(stty speed <&9)" = 57600 ] || fail 'another speed than 57600'
stty -a <&9 | grep -q -- '-icanon.*-echo ' || fail 'the line is not raw'
claim 'the line has the speed and the format of the gateway'

other_user sh -c "$opener" "$(readlink "$work/line")" 2>"$work/refused" &&
    fail 'a second opener was let in'
"$bin/serial" 127.0.0.1:0 "$work/line" >"$work/second" 2>&1 && fail 'a second gateway has started'
has "$work/second" EBUSY || fail 'the second gateway has failed for another reason'
claim 'the line is exclusive: an opener and a second gateway are refused'

"$bin/serial" 127.0.0.1:0 "$work/none" >"$work/second" 2>&1 && fail 'a line that does not exist'
has "$work/second" ENOENT || fail 'not ENOENT'
claim 'a wrong name of the line is reported at the start'

client 1
first=$peer
exec 3>"$work/in.1"
client 2
exec 4>"$work/in.2"
timeout 60 cat "$work/device" >"$work/said" 2>"$work/cat" &
is_peer
reader=$peer
printf 'first\n' >&3
until_true has "$work/said" first # has the pen
printf 'not its turn\n' >&4
printf 'heard by all\n' >"$work/device"
until_true has "$work/out.1" 'heard by all'
until_true has "$work/out.2" 'heard by all'
head -c 100000 /dev/urandom | base64 >"$work/text"
cat "$work/text" >&3
printf 'last\n' >&3
until_true has "$work/said" last
(printf 'first\n' && cat "$work/text" && printf 'last\n') | cmp - "$work/said" ||
    fail 'the line has got other bytes than those of the first client'
claim 'all clients hear the line, and the bytes of the one that writes reach it unchanged'

exec 3>&-
end "$reader"
end "$first"
timeout 60 cat "$work/device" >"$work/said" 2>"$work/cat" &
is_peer
until_true sh -c 'echo second >&4; sleep 0.1; grep -q second "$0"' "$work/said"
claim 'when the writing client has left, another one writes'

end "$cable" # the device is pulled out
exec 9>&-
until_true has "$work/log" '/line: .*E'
rm -f "$work/line" "$work/device"
cable 19200 icanon
until_true sh -c '[ "$(stty speed <&9)" = 57600 ]'
printf 'back again\n' >"$work/device"
until_true has "$work/out.2" 'back again'
claim 'a device that vanishes and comes back is opened again, and clients stay connected'

python3 - "$port" "$work/device" <<'END' || fail 'the client that is too slow'
import os, socket, sys, time
def client(receive_bytes=None):
    s = socket.socket()
    if receive_bytes: s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.settimeout(20)
    s.connect(("127.0.0.1", int(sys.argv[1])))
    return s
def receive(s, n):
    got = b""
    while len(got) < n: got += s.recv(n - len(got)) or sys.exit("the quick client was cut")
    return got
device = os.open(sys.argv[2], os.O_RDWR | os.O_NOCTTY)
sent = b""
def say(block): # the quick client keeps up, whatever the load of this machine
    global sent
    sent += block
    while block:
        n = os.write(device, block)
        if receive(quick, n) != block[:n]: sys.exit("the quick client got other bytes")
        block = block[n:]
def hear(s): # it is a client once it has heard something
    s.settimeout(0.2)
    while True:
        os.write(device, b"?")
        try:
            if s.recv(1): break
        except TimeoutError: pass
    if s is quick: # and has heard all of that
        try:
            while s.recv(100): pass
        except TimeoutError: pass
    s.settimeout(20)
def is_reset(s): return s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
def check(s, got):
    while more := s.recv(1 << 20): got += more
    got = got.lstrip(b"?")
    if not got or not sent.startswith(got): sys.exit("a slow client has got bytes with a gap")

silent, quick = client(4096), client()
hear(silent)
hear(quick)
# More than the buffers of its socket hold, and less than the gateway keeps.
for i in range(240): say(b"%09d\n" % i * 25)
began = time.monotonic()
while not is_reset(silent):
    if time.monotonic() > began + 20: sys.exit("a client that does not read is not disconnected")
    time.sleep(0.1)
check(silent, b"")

slow, sent, got, number = client(4096), b"", b"", 0
hear(slow)
hear(quick)
while not is_reset(slow):
    say(b"".join(b"%09d\n" % (number + i) for i in range(2000)))
    number += 2000
    if len(sent) > 32 << 20: sys.exit("a slow client was not disconnected")
    got += slow.recv(2000)
check(slow, got)
END
claim 'clients that do not read, or too slowly, are reset without a gap; others get all bytes'

exec 4>&-
stop
[ "$(stty -g <&9)" = "$before" ] || fail 'other settings than before'
other_user sh -c "$opener" "$(readlink "$work/line")" || fail 'the line is still exclusive'
claim 'after the stop the line has its old settings, and others may open it'

start "$bin/serial" 127.0.0.1:0 "$work/line" 2>"$work/log"
client 3
exec 5>"$work/in.3"
timeout 60 cat "$work/device" >"$work/said" 2>"$work/cat" &
is_peer
printf 'open\n' >&5
until_true has "$work/said" open
cat "$work/text" >&5
until_true sh -c '[ "$(wc -c <"$0")" -gt 50000 ]' "$work/said"
printf 'the end\n' >"$work/device"
until_true has "$work/out.3" 'the end'
stop
exec 5>&-
claim 'a stop with clients connected ends in order'
