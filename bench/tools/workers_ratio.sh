#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Measures the echo server with different numbers of workers, on CPUs that it shares with its
# client: requests per second, relative to those of the first number in the same round.
#
#   bench/tools/workers_ratio.sh [ROUNDS] [WORKERS...]     default: 15 rounds of 2, 1 and 17 workers
#
# The client has 100 connections and a thread for each CPU. Nothing is pinned. A run takes two
# seconds. The result is the median of the rounds' ratios, with their extremes.
set -eu
. "$(dirname "$0")/server.sh"
bin=build/bench
rounds=${1:-15}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- 2 1 17
make -s "$bin/echo_server" "$bin/load"

measure() { # workers
    start "$bin/echo_server" 0 "$1" 20
    "$bin/load" --port "$port" --conns 100 --threads "$(nproc)" --seconds 2 >"$work/load" ||
        fail "the client found errors"
    stop
    value per_second "$work/load"
}
i=0
while [ "$i" -lt "$rounds" ]; do
    for workers; do measure "$workers"; done | tr '\n' ' '
    echo
    i=$((i + 1))
done >"$work/rounds"
column=1
for workers; do
    awk -v column="$column" '{ print $column, $column / $1 }' "$work/rounds" | sort -n -k2 |
        awk -v workers="$workers" '
            { rate[NR] = $1; ratio[NR] = $2 }
            END {
                at = int((NR + 1) / 2)
                printf "%3d workers: %d requests per second, ratio %.3f (%.3f to %.3f)\n", workers,
                    rate[at], ratio[at], ratio[1], ratio[NR]
            }'
    column=$((column + 1))
done
