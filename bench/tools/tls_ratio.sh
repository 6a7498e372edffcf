#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The cost of volt.h and volt_openssl.h in a TLS echo server, against a bare OpenSSL epoll loop, and
# that of other runtimes with their own TLS.
#
#   bench/tools/tls_ratio.sh [ROW...]     default: all
#
#   N10a  512 bytes there and back, 50 connections
#   N10b  messages of 64 KiB there and back, 4 connections
#   N10c  a connection with a full handshake for each message of 64 bytes, 4 at a time
#   N10d  the same with resumed sessions
#
# Environment, with its defaults:
#   PEERS=        'go tokio': also these: crypto/tls; rustls with aws-lc. Needs go; cargo
#   ROUNDS=7      each server once per round
#   EACH=1.5      seconds of a run
#   BIN=build/bench
#
# The servers run on one thread under the same client, in turn, every second round backwards, so
# that a drift of the machine meets all. The server is pinned to CPU 0; the client to CPU 1, or to
# CPU 0 if there is no other. The figures are the CPU time of the server for a message, and the
# messages per second. The result is, for each server, the median of its ratios to the bare loop of
# the same round in CPU time, with the extremes. Fails if a client finds an error.
set -eu
. "$(dirname "$0")/server.sh"
bin=${BIN:-build/bench}
rounds=${ROUNDS:-7}
each=${EACH:-1.5}
peers=${PEERS:-}
[ $# -gt 0 ] || set -- N10a N10b N10c N10d
command -v taskset >/dev/null || fail "taskset is missing: install the package util-linux"
make -s "$bin/tls_server" "$bin/raw_tls" "$bin/tls_load"
program_of() {
    case $1 in
    raw) echo "$bin/raw_tls" ;;
    volt) echo "$bin/tls_server" ;;
    go | tokio) echo "build/peers/$1-tls/$1-tls" ;;
    *) fail "no such peer: $1" ;;
    esac
}
for peer in $peers; do
    program_of "$peer" >/dev/null
    "$(dirname "$0")/../peers/$peer-tls/build.sh" || fail "$peer was not built"
done
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
# measure ROW NAME  Writes CPU us per message and messages per second to $work/NAME.
measure() {
    start taskset -c 0 "$(program_of "$2")" "$work/cert.pem" "$work/key.pem" 60
    # shellcheck disable=SC2046 # words
    taskset -c "$client_cpu" "$bin/tls_load" $(load_of "$1") --port "$port" --seconds "$each" \
        >"$work/load" || fail "the client found errors: $(cat "$work/load")"
    stop
    awk -v cpu="$(value cpu_us "$work/server")" -v n="$(value requests "$work/load")" \
        -v rate="$(value per_second "$work/load")" 'BEGIN { print cpu / n, rate }' >"$work/$2"
}

forwards="raw volt $peers" backwards=
for name in $forwards; do backwards="$name $backwards"; done
printf '%-5s %5s %-6s %10s %10s %8s\n' row round server 'cpu us' 'per s' ratio
for row in "$@"; do
    : >"$work/rounds"
    i=1
    while [ "$i" -le "$rounds" ]; do
        order=$forwards
        [ $((i % 2)) -eq 1 ] || order=$backwards
        for name in $order; do measure "$row" "$name"; done
        for name in $forwards; do
            paste "$work/raw" "$work/$name" | awk -v row="$row" -v i="$i" -v name="$name" '{
                printf "%-5s %5d %-6s %10.3f %10d %8.3f\n", row, i, name, $3, $4, $3 / $1
            }'
        done | tee -a "$work/rounds"
        i=$((i + 1))
    done
    for name in volt $peers; do
        awk -v name="$name" '$3 == name' "$work/rounds" | sort -n -k6 | awk -v row="$row" '
            { ratio[NR] = $6; name = $3 }
            END {
                median = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
                printf "%s: %s median ratio %.3f (%.3f to %.3f)\n", row, name, median, ratio[1],
                    ratio[NR]
            }'
    done
done
