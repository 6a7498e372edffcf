#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/unix_server.c with socat, python3 and its own client as clients.
#
#   tests/tools/programs/unix_server.sh DIRECTORY     with the program
set -eu
files=$1/unix_server
. "$(dirname "$0")/peers.sh"

# same TITLE WANT GOT
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }
# serve [-p] ADDR  Starts the server on the directory $work/files.
serve() { start "$files" serve "$@" "$work/files"; }
# ask LINE [FILE...]  The answer, which the client writes to its standard error.
ask() { timeout 20 "$files" ask "unix:$work/socket" "$@" 2>&1 >"$work/got"; }
# whoami SOCAT_ADDRESS  Compares the answer with the number of the process, the user and the group.
echo whoami >"$work/question"
whoami() {
    timeout 20 sh -c 'echo "ok process $$ user $(id -u) group $(id -g)"
        exec socat -t 10 - "$0"' "$1" <"$work/question" >"$work/answer"
    lines "$work/answer" 2 || fail "$1: no answer"
    same "$1" 1 "$(uniq "$work/answer" | wc -l)"
}
descriptors() { ls "/proc/$server/fd" | wc -l; }
# as_other COMMAND...
as_other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

mkdir "$work/files"
chmod 711 "$work"
serve "unix:@volt.$$"
whoami "ABSTRACT-CONNECT:volt.$$"
claim 'socat talks to an abstract name, and the peer is the process, user and group of socat'
if [ "$(id -u)" -eq 0 ]; then
    as_other timeout 20 socat -t 10 - "ABSTRACT-CONNECT:volt.$$" <"$work/question" \
        >"$work/answer" 2>"$work/errors" || : # it may find the connection closed
    same 'another user' '' "$(cat "$work/answer")"
    claim 'an abstract name, which has no mode, serves no other user'
fi
stop

serve -p "unix:$work/packets"
whoami "UNIX-CONNECT:$work/packets,type=5"
echo packet >"$work/packet"
same 'put by packets' 'ok 7 bytes' \
    "$(timeout 20 "$files" ask -p "unix:$work/packets" 'put packet' "$work/packet" 2>&1)"
cmp "$work/packet" "$work/files/packet" || fail 'put by packets: another content'
stop
claim 'socat and the client talk to a SOCK_SEQPACKET'

serve "unix:$work/socket"
whoami "UNIX-CONNECT:$work/socket"
same 'mode' 660 "$(stat -c %a "$work/socket")"
claim 'socat talks to a path, which has the mode 660'

"$files" serve "unix:$work/socket" "$work/files" >"$work/second" 2>&1 &&
    fail 'two servers on one path'
has "$work/second" EADDRINUSE || fail 'the second server has failed for another reason'
whoami "UNIX-CONNECT:$work/socket"
kill -KILL "$server"
wait "$server" 2>"$work/killed" || :
[ -S "$work/socket" ] || fail 'the killed server has left no path'
serve "unix:$work/socket"
whoami "UNIX-CONNECT:$work/socket"
echo content >"$work/ordinary"
"$files" serve "unix:$work/ordinary" "$work/files" >"$work/second" 2>&1 && fail 'not a socket'
same 'a file' content "$(cat "$work/ordinary")"
claim 'a stale path is taken over; a live one is refused, and so is a file'

before=$(descriptors)
head -c 1048576 /dev/urandom >"$work/large"
same 'put' 'ok 1048576 bytes' "$(ask 'put large' "$work/large")"
cmp "$work/large" "$work/files/large" || fail 'put: another content'
same 'get' 'ok 1048576 bytes' "$(ask 'get large')"
cmp "$work/large" "$work/got" || fail 'get: another content'
same 'get to a pipe' "$(sha256sum <"$work/large")" \
    "$(timeout 20 "$files" ask "unix:$work/socket" 'get large' 2>"$work/answer" | sha256sum)"
same 'put from a pipe' 'ok 6 bytes' "$(printf 'a pipe' | ask 'put pipe' /dev/stdin)"
same 'the pipe' 'a pipe' "$(cat "$work/files/pipe")"
claim 'an open file and a pipe are read by the server, and an open file by the client'

printf x >>"$work/large"
mkdir "$work/files/folder"
printf secret >"$work/secret"
ln -s "$work/secret" "$work/files/link"
for refusal in 'get none:ENOENT' 'get folder:EACCES' 'get link:ELOOP' 'get ../secret:usage' \
    'get .:usage' 'put x:usage' 'else:usage'; do
    ask "${refusal%:*}" >"$work/answer" && fail "$refusal"
    has "$work/answer" "^error .*${refusal#*:}" || fail "$refusal: $(cat "$work/answer")"
    [ ! -s "$work/got" ] || fail "$refusal: a descriptor came"
done
ask 'put large' "$work/large" >"$work/answer" && fail 'too large'
has "$work/answer" EFBIG || fail 'too large: not EFBIG'
ask 'put zero' /dev/zero >"$work/answer" && fail 'a device'
has "$work/answer" EACCES || fail 'a device: not EACCES'
same 'the old content' 1048576 "$(wc -c <"$work/files/large")"
claim 'files outside of the directory, links, folders, devices and large files are refused'

python3 - "$work" <<'END' || fail 'many descriptors'
import array, os, socket, sys
work = sys.argv[1]
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(work + "/socket")
    return s
def answer(s):
    got = b""
    while not got.endswith(b"\n"):
        more = s.recv(1000)
        if not more: break
        got += more
    return got.decode()
def same(title, want, got):
    if want != got: sys.exit("%s: wanted %r, got %r" % (title, want, got))
for i in range(253):
    with open("%s/part.%03d" % (work, i), "w") as f: f.write("part %03d\n" % i)
fds = [os.open("%s/part.%03d" % (work, i), os.O_RDONLY) for i in range(253)]
s = connect()
socket.send_fds(s, [b"put parts\n"], fds)
same("253 descriptors", "ok 2277 bytes\n", answer(s))
same("their content", "".join("part %03d\n" % i for i in range(253)),
     open(work + "/files/parts").read())
socket.send_fds(s, [b"whoami\n"], fds)
same("not taken", "ok process %d " % os.getpid(), answer(s)[:len("ok process %d " % os.getpid())])
socket.send_fds(s, [b"put tw"], fds[:200])
socket.send_fds(s, [b"o\n"], fds[200:253])
same("two messages", "ok 2277 bytes\n", answer(s))
socket.send_fds(s, [b"put sur"], fds[:200])
socket.send_fds(s, [b"plus\n"], fds[:200])
same("a surplus", "error more descriptors", answer(s)[:22])
socket.send_fds(s, [b"put first\nput second\n"], fds[7:8])
s.shutdown(socket.SHUT_WR)
got = s.makefile().read().splitlines()
same("two lines", ["error", "ok 9 bytes"], [got[0][:5], got[1]])
same("of the second", "part 007\n", open(work + "/files/second").read())
same("of the first", False, os.path.exists(work + "/files/first"))
s = connect()
s.sendall(b"get parts\n")
got, fds_got, flags, address = socket.recv_fds(s, 1000, 10)
same("a file", (b"ok 2277 bytes\n", 1), (got, len(fds_got)))
same("its content", b"part 000\n", os.pread(fds_got[0], 9, 0))
s.sendall(b"get folder\n")
got, fds_got, flags, address = socket.recv_fds(s, 1000, 10)
same("a folder", (b"error", 0), (got[:5], len(fds_got)))
s.sendall(b"x" * 100000 + b"\nwhoami\n")
same("a long line", "error", answer(s)[:5])
socket.send_fds(s, [b"put unfinished"], fds) # the connection ends inside a line
s.close()
END
until_true sh -c '[ "$(ls "/proc/$0/fd" | wc -l)" -eq "$1" ]' "$server" "$before"
claim '253 descriptors come with one message; surplus ones and those not taken are closed'

if [ "$(id -u)" -eq 0 ]; then
    chmod 666 "$work/socket"
    as_other timeout 20 "$files" ask "unix:$work/socket" whoami 2>"$work/answer" ||
        fail 'another user'
    has "$work/answer" 'user 65534 group 65534$' || fail "another user: $(cat "$work/answer")"
    as_other timeout 20 "$files" ask "unix:$work/socket" 'put x' 2>"$work/answer" && fail 'put'
    has "$work/answer" EPERM || fail "put by another user: $(cat "$work/answer")"
    as_other timeout 20 "$files" ask "unix:$work/socket" 'put x' /dev/null 2>"$work/answer" &&
        fail 'a descriptor'
    has "$work/answer" 'more descriptors than are taken' || fail 'a descriptor of another user'
    same 'descriptors' "$before" "$(descriptors)"
    claim 'another user, if the mode lets it in, may not put files or pass descriptors'
fi

# A session is in the middle of a line, and another one in the middle of a put.
mkfifo "$work/slow" "$work/in"
timeout 30 "$files" ask "unix:$work/socket" 'put slow' "$work/slow" 2>"$work/answer" &
is_peer
putter=$peer
exec 3>"$work/slow"
timeout 30 socat -t 10 - "UNIX-CONNECT:$work/socket" <"$work/in" >"$work/open" &
is_peer
exec 4>"$work/in"
printf 'whoami\nput' >&4
until_true has "$work/open" '^ok'
until_true sh -c 'ls -l "/proc/$0/fd" | grep -q "/slow$"' "$server" # the put has begun
printf 'begun before the stop' >&3
kill -TERM "$server"
until_true test ! -e "$work/socket" # the server is stopping
exec 3>&- 4>&-
wait "$putter" || fail 'the put of the stop'
stop
same 'the put of the stop' 'begun before the stop' "$(cat "$work/files/slow")"
[ "$(ls -A "$work/files" | grep -c '[.][0-9]')" -eq 0 ] || fail 'a temporary file is left'
claim 'a stop removes the path, and completes the commands that have begun'
