# SPDX-License-Identifier: MIT OR 0BSD
# Sourced by the scripts of this folder: bench/tools/server.sh, and the peers of a server, of which
# none is left behind.
. "$(dirname "$0")/../../../bench/tools/server.sh"
peers=

# Kills those of the processes that are still children of this shell.
cleanup() {
    for child in $peers $server; do
        [ "$(awk '{ print $4 }' "/proc/$child/stat" 2>/dev/null)" != "$$" ] ||
            kill -KILL "$child" 2>/dev/null || :
    done
    rm -rf "$work"
}
# Notes the last background process; $peer is its number.
is_peer() {
    peer=$!
    peers="$peers $peer"
}
# end PID  Ends a peer, and waits for it.
end() {
    kill "$1" 2>/dev/null || :
    wait "$1" 2>/dev/null || :
}
claim() { echo "$(basename "$0" .sh): $*"; }
# until_true COMMAND...  Repeats the command until it succeeds, for 30 s.
until_true() {
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || fail "in vain: $*"
        sleep 0.1
    done
}
# has FILE PATTERN
has() { grep -q -- "$2" "$1"; }
# lines FILE N  The file has N lines.
lines() { [ "$(wc -l <"$1")" -eq "$2" ]; }
