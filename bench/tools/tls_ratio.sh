#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The cost of volt.h and volt_openssl.h in a TLS echo server, against a bare OpenSSL epoll loop.
#
#   bench/tools/tls_ratio.sh [ROW...]     default: all
#
#   N10a  512 bytes there and back, 50 connections
#   N10b  messages of 64 KiB there and back, 4 connections
#   N10c  a connection with a full handshake for each message of 64 bytes, 4 at a time
#   N10d  the same with resumed sessions
#
# Environment, with its defaults:  BIN=build/bench  PAIRS=7  EACH=1.5   seconds of a run
#
# Both servers run on one thread under the same client, in turn: A B, B A, A B and so on, so that a
# drift of the machine meets both. The server is pinned to CPU 0; the client to CPU 1, or to CPU 0
# if there is no other. The figures are the CPU time of the server for a message, and the messages
# per second; the result is the median of the pairs' ratios of CPU time. Fails if a client finds an
# error.
set -eu
. "$(dirname "$0")/server.sh"
bin=${BIN:-build/bench}
pairs=${PAIRS:-7}
each=${EACH:-1.5}
[ $# -gt 0 ] || set -- N10a N10b N10c N10d
command -v taskset >/dev/null || fail "taskset is missing: install the package util-linux"
make -s "$bin/tls_server" "$bin/raw_tls" "$bin/tls_load"
client_cpu=1
[ "$(nproc)" -gt 1 ] || client_cpu=0
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" \
    -out "$work/cert.pem" -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 \
    2>"$work/openssl" || fail "no certificate: $(cat "$work/openssl")"
TLS_AUTHORITIES=$work/cert.pem
export TLS_AUTHORITIES

load_of() {
    case $1 in
    N10a) echo echo --conns 50 --size 512 ;;
    N10b) echo echo --conns 4 --size 65536 ;;
    N10c) echo churn --conns 4 --size 64 ;;
    N10d) echo resume --conns 4 --size 64 ;;
    *) fail "no such row: $1" ;;
    esac
}
for row in "$@"; do load_of "$row" >/dev/null; done
# measure ROW raw|volt  Writes CPU us per message and messages per second to $work/raw or volt
measure() {
    program=raw_tls
    [ "$2" = raw ] || program=tls_server
    start taskset -c 0 "$bin/$program" "$work/cert.pem" "$work/key.pem" 60
    # shellcheck disable=SC2046 # words
    taskset -c "$client_cpu" "$bin/tls_load" $(load_of "$1") --port "$port" --seconds "$each" \
        >"$work/load" || fail "the client found errors: $(cat "$work/load")"
    stop
    awk -v cpu="$(value cpu_us "$work/server")" -v n="$(value requests "$work/load")" \
        -v rate="$(value per_second "$work/load")" 'BEGIN { print cpu / n, rate }' >"$work/$2"
}

printf '%-5s %4s %10s %10s %8s %10s %10s\n' row pair 'raw us' 'volt us' ratio 'raw /s' 'volt /s'
for row in "$@"; do
    : >"$work/pairs"
    i=1
    while [ "$i" -le "$pairs" ]; do
        order='raw volt'
        [ $((i % 2)) -eq 1 ] || order='volt raw'
        for name in $order; do measure "$row" "$name"; done
        paste "$work/raw" "$work/volt" | awk -v row="$row" -v i="$i" '{
            printf "%-5s %4d %10.3f %10.3f %8.3f %10d %10d\n", row, i, $1, $3, $3 / $1, $2, $4
        }' | tee -a "$work/pairs"
        i=$((i + 1))
    done
    sort -n -k5 "$work/pairs" | awk -v row="$row" '
        { ratio[NR] = $5 }
        END {
            median = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
            printf "%s: median ratio %.3f (%.3f to %.3f)\n", row, median, ratio[1], ratio[NR]
        }'
done
