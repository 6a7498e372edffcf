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
shift
[ $# -gt 0 ] || set -- pollset guest
set -- epoll "$@"
port=${PORT:-16379} gets=${GETS:-200000}
for form; do
    [ -x "$source.$form/src/valkey-server" ] || {
        echo "$source.$form is not built: tests/projects/valkey.sh $source $form" >&2
        exit 1
    }
done
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tick_us=$((1000000 / $(getconf CLK_TCK)))
used() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'; } # in ticks
client() { "$source.epoll/src/valkey-cli" -p "$port" "$@"; }

# measure FORM CLIENTS  Adds a line "FORM CLIENTS microseconds".
measure() {
    AE_NO_TICK=1 taskset -c 0 "$source.$1/src/valkey-server" --bind 127.0.0.1 --port "$port" \
        --save '' >"$work/server.log" 2>&1 &
    server=$!
    until client ping >"$work/ping.log" 2>&1; do
        kill -0 "$server" 2>/dev/null || { cat "$work/server.log" && exit 1; }
        sleep 0.1
    done
    client set key:000000000000 xxx >"$work/ping.log"
    before=$(used)
    taskset -c 1 "$source.epoll/src/valkey-benchmark" -p "$port" -t get -n "$gets" -c "$2" -q \
        >"$work/benchmark.log"
    echo "$1 $2 $(used) $before $tick_us $gets" |
        awk '{ printf "%s %s %.4f\n", $1, $2, ($3 - $4) * $5 / $6 }' >>"$work/all"
    kill "$server"
    wait "$server" || :
    server=
}

left=${ROUNDS:-9}
while [ "$left" -gt 0 ]; do
    left=$((left - 1))
    for clients in ${CLIENTS:-1 50}; do for form; do measure "$form" "$clients"; done; done
    first=$1
    shift
    set -- "$@" "$first"
done
awk '
function median(list, n, i, j, t, v) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
            t = v[j]
            v[j] = v[j - 1]
            v[j - 1] = t
        }
    least = v[1]; most = v[n]
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
{
    at[$1, $2] = at[$1, $2] " " $3
    round = ++n[$1, $2]
    cost[$1, $2, round] = $3
    if (!($1 in is_form)) { is_form[$1] = 1; forms = forms " " $1 }
    if (!($2 in is_clients)) { is_clients[$2] = 1; clients = clients " " $2 }
}
END {
    m = split(forms, f, " ")
    k = split(clients, c, " ")
    for (j = 1; j <= k; j++) for (i = 1; i <= m; i++) {
        us = median(at[f[i], c[j]])
        ratios = ""
        for (r = 1; r <= n[f[i], c[j]]; r++)
            ratios = ratios " " cost[f[i], c[j], r] / cost["epoll", c[j], r]
        ratio = median(ratios)
        printf "%-8s %3d clients  %6.2f us for a GET, %.2f times that over epoll (%.2f to %.2f)\n",
            f[i], c[j], us, ratio, least, most
    }
}' "$work/all"
