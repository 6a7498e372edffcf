#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The cost of volt.h in an echo server: CPU time of the server per request, against raw_epoll.
#
#   bench/tools/echo_ratio.sh [DIRECTORY] [PAIRS]     default: build/bench, whose programs make
#                                                     builds; 7 pairs
#
# Both servers run on one thread under the same client, in turn: A B, B A, A B and so on, so that a
# drift of the machine meets both. The server is pinned to CPU 0; the client to CPU 1, or to CPU 0
# if there is no other. A pair takes three seconds. The result is the median of the pairs' ratios.
set -eu
. "$(dirname "$0")/server.sh"
bin=${1:-build/bench}
pairs=${2:-7}
command -v taskset >/dev/null || fail "taskset is missing: install the package util-linux"
make -s "$bin/raw_epoll" "$bin/echo_server" "$bin/load"
client_cpu=1
[ "$(nproc)" -gt 1 ] || client_cpu=0

# measure raw|volt  Writes the CPU time per request in us and the requests per second to $work/$1.
measure() {
    case $1 in
    raw) start taskset -c 0 "$bin/raw_epoll" echo 1 10 ;;
    volt) start taskset -c 0 "$bin/echo_server" 0 1 10 ;;
    esac
    taskset -c "$client_cpu" "$bin/load" --port "$port" --seconds 1.5 >"$work/load" ||
        fail "the client found errors"
    stop
    awk -v cpu="$(value cpu_us "$work/server")" -v n="$(value requests "$work/load")" \
        -v rate="$(value per_second "$work/load")" 'BEGIN { print cpu / n, rate }' >"$work/$1"
}

printf '%4s %10s %10s %8s %10s %10s\n' pair 'raw us' 'volt us' ratio 'raw /s' 'volt /s'
i=1
while [ "$i" -le "$pairs" ]; do
    order='raw volt'
    [ $((i % 2)) -eq 1 ] || order='volt raw'
    for name in $order; do measure "$name"; done
    paste "$work/raw" "$work/volt" | awk -v i="$i" '{
        printf "%4d %10.3f %10.3f %8.3f %10d %10d\n", i, $1, $3, $3 / $1, $2, $4
    }' | tee -a "$work/pairs"
    i=$((i + 1))
done
sort -n -k4 "$work/pairs" | awk '
    { ratio[NR] = $4 }
    END {
        median = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
        printf "median ratio %.3f (%.3f to %.3f)\n", median, ratio[1], ratio[NR]
    }'
