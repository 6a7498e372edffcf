# SPDX-License-Identifier: MIT OR 0BSD
# Sourced by the scripts that need a server: one runs at a time, and none is left behind.

work=$(mktemp -d)
server=

cleanup() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || :
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# start COMMAND...  Starts a server, which prints "port N" first, and sets $port. Its output goes to
# $work/server.
start() {
    : >"$work/server"
    "$@" >"$work/server" &
    server=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        port=$(value port "$work/server")
        [ -z "$port" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    fail "the server did not start: $*"
}

# Ends the server and waits for it: fails unless its exit status is 0.
stop() {
    ended=0
    kill -TERM "$server" 2>/dev/null || :
    wait "$server" || ended=$?
    server=
    [ "$ended" -eq 0 ] || fail "the server ended with status $ended"
}

# value NAME FILE  The number behind a name that begins a line; empty if there is none.
value() {
    awk -v name="$1" '$1 == name { print $2; exit }' "$2"
}
