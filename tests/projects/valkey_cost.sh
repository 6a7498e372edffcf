#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# CPU time of Valkey's server for a GET, over backends of examples/projects and over its own.
#
#   tests/projects/valkey_cost.sh SOURCE [FORM...]      default: pollset guest
#
# Uses the trees SOURCE.epoll and SOURCE.FORM, which tests/projects/valkey.sh has built. In each
# round every server runs once, and the order rotates. No task of volt ticks (AE_NO_TICK).
# Environment: ROUNDS=9  GETS=200000  CLIENTS='1 50'  PORT=16379, of 127.0.0.1
set -eu
source=${1:?SOURCE is missing}
tools=$(dirname "$0")/../../bench/tools
. "$tools/server.sh"
shift
[ $# -gt 0 ] || set -- pollset guest
set -- epoll "$@"
port=${PORT:-16379} gets=${GETS:-200000}
for form; do
    [ -x "$source.$form/src/valkey-server" ] ||
        fail "$source.$form is not built: tests/projects/valkey.sh $source $form"
done
tick_us=$((1000000 / $(getconf CLK_TCK)))
used() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'; } # in ticks
client() { "$source.epoll/src/valkey-cli" -p "$port" "$@"; }

# measure FORM CLIENTS  Adds a line "FORM CLIENTS microseconds".
measure() {
    AE_NO_TICK=1 taskset -c 0 "$source.$1/src/valkey-server" --bind 127.0.0.1 --port "$port" \
        --save '' >"$work/server" 2>&1 &
    server=$!
    until client ping >"$work/ping" 2>&1; do
        kill -0 "$server" 2>/dev/null || fail "the server did not start: $(cat "$work/server")"
        sleep 0.1
    done
    client set key:000000000000 xxx >"$work/ping"
    before=$(used)
    taskset -c 1 "$source.epoll/src/valkey-benchmark" -p "$port" -t get -n "$gets" -c "$2" -q \
        >"$work/benchmark"
    echo "$1 $2 $((($(used) - before) * tick_us)) $gets" |
        awk '{ printf "%s %s %.4f\n", $1, $2, $3 / $4 }' >>"$work/all"
    stop
}

left=${ROUNDS:-9}
while [ "$left" -gt 0 ]; do
    left=$((left - 1))
    for clients in ${CLIENTS:-1 50}; do for form; do measure "$form" "$clients"; done; done
    first=$1
    shift
    set -- "$@" "$first"
done
awk -f "$tools/ratio.awk" -f - "$work/all" <<'PROGRAM'
{
    if (!(($1, $2) in n)) key[++n_keys] = $1 SUBSEP $2
    cost[$1, $2, ++n[$1, $2]] = $3
}
END {
    for (k = 1; k <= n_keys; k++) {
        split(key[k], who, SUBSEP)
        m = n[key[k]]
        for (i = 1; i <= m; i++) x[i] = cost[key[k], i]
        us = median_x(m)
        for (i = 1; i <= m; i++) x[i] = quotient(cost[key[k], i], cost["epoll", who[2], i])
        ratio = median_x(m)
        printf "%-8s %3d clients  %6.2f us for a GET, %.2f times that over epoll (%.2f to %.2f)\n",
            who[1], who[2], us, ratio, x[1], x[m]
    }
}
PROGRAM
