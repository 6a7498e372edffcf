#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The network rows by volt.h, a bare epoll loop, Tokio, Go, libuv, and Redis.
#
#   bench/tools/net_ratio.sh [ROW...]     default: all
#
#   N1       64 bytes there and back, 1 connection; N1s: client and server on one CPU
#   N2a N2b  512 bytes there and back, 100 and 1000 connections
#   N3       a stream: 4 connections with 32 messages of 512 bytes under way on each
#   N4       N2a with 2 workers on both CPUs, and the client, with 2 threads, there too
#   N5a N5b  HTTP/1.1 with keep-alive, 50 connections, with 1 and 16 requests under way on each
#            by Tokio's hyper and Go's net/http, which know more of HTTP than the parser of the
#            others, bench/servers/serve.h; net/http writes each answer by itself
#   N5c N5d  Redis' PING, the same;  N5cs N5ds: SET and GET in turn
#   N6       connect, accept, 64 bytes there and back, close: 8 clients at a time
#   N7u N7v  datagrams of 64 bytes, 1 and 16 under way; volt.h waits by volt_readable and leaves
#            recvfrom and sendto to the program
#
# Environment, with its defaults:
#   BIN=build/bench  PAIRS=21  EACH=1   seconds of a run
#   PEERS="raw tokio go libuv redis"    tokio1: Tokio's scheduler of one thread
#   BENCH_JSON=                         set: a line of JSON for each row and peer as well
#
# Peers are built to build/peers; those that cannot be built are named and left out. The server has
# one worker on CPU 0, the client CPU 1, unless a row says otherwise; all run on CPU 0 if there is
# no other. Every server runs once in a round, in an order that rotates, so that a drift of the
# machine affects all; a server or client that is left behind ends by itself. Columns:
#   /s, p50, p99      requests per second, and latency in us: medians of the rounds
#   cpu, wakes        of the server for a request: user and system time in us, and the number of
#                     times that one of its threads slept and was woken
#   cpu x, /s x       CPU time of the peer over volt's, requests per second of volt over the peer's:
#                     above 1 volt is better. Medians of the rounds' ratios, and the interval of the
#                     median at 95 %, which needs 6 rounds or more
# Fails if a client finds an error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/server.sh"
bin=${BIN:-build/bench}
pairs=${PAIRS:-21}
each=${EACH:-1}
limit=60 # seconds until a server ends by itself
redis=   # the process, a child of $server
end_redis() {
    [ -n "$redis" ] || return 0
    kill -KILL "$redis" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
}
trap 'end_redis; cleanup' EXIT

command -v taskset >/dev/null || fail "taskset is missing: install the package util-linux"
make -s "$bin/net_server" "$bin/raw_epoll" "$bin/load"
# shellcheck disable=SC3045 # most shells have it; a failure is harmless
ulimit -n 4096 2>/dev/null || :
other=1
[ "$(nproc)" -gt 1 ] || other=0

# row ID  Sets the parameters of the row: mode of the server, workers, CPUs, and load.
row() {
    mode=echo workers=1 server_cpus=0 client_cpus=$other
    case $1 in
    N1) load='echo --conns 1 --size 64' ;;
    N1s) load='echo --conns 1 --size 64' client_cpus=0 ;;
    N2a) load='echo --conns 100 --size 512' ;;
    N2b) load='echo --conns 1000 --size 512' ;;
    N3) load='echo --conns 4 --size 512 --pipeline 32' ;;
    N4)
        load='echo --conns 100 --size 512 --threads 2'
        workers=2 server_cpus=0,$other client_cpus=0,$other
        ;;
    N5a) mode=http load='http --conns 50' ;;
    N5b) mode=http load='http --conns 50 --pipeline 16' ;;
    N5c) mode=resp load='ping --conns 50' ;;
    N5d) mode=resp load='ping --conns 50 --pipeline 16' ;;
    N5cs) mode=resp load='set --conns 50' ;;
    N5ds) mode=resp load='set --conns 50 --pipeline 16' ;;
    N6) load='churn --conns 8 --size 64' ;;
    N7u) mode=udp load='udp --conns 1 --size 64' ;;
    N7v) mode=udp load='udp --conns 1 --size 64 --pipeline 16' ;;
    *) fail "no such row: $1" ;;
    esac
}
[ $# -gt 0 ] || set -- N1 N1s N2a N2b N3 N4 N5a N5b N5c N5d N5cs N5ds N6 N7u N7v
for id in "$@"; do row "$id"; done

# ---- servers

# peer NAME  Builds it, and prints name, version with _ for blanks, and program.
peer() {
    case $1 in
    raw) echo "raw Linux_$(uname -r) $bin/raw_epoll" ;;
    tokio | tokio1) built tokio-net tokio-net "$1" ;;
    go) built go-net go-net go ;;
    libuv) built libuv-net libuv_net libuv ;;
    redis)
        command -v redis-server >/dev/null || {
            echo "redis-server is missing: install the package redis-server" >&2
            return 3
        }
        echo "redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/Redis_\1/') redis-server"
        ;;
    *) fail "no such peer: $1" ;;
    esac
}
# built DIRECTORY PROGRAM NAME
built() {
    "$here/../peers/$1/build.sh" "build/peers/$1" || return $?
    echo "$3 $("build/peers/$1/$2" --version | tr ' ' _) build/peers/$1/$2"
}

echo "volt $(sed -n '2s|^// \([^ ]*\) \([^ ]*\) .*|\1_\2|p' "$here/../../volt.h") $bin/net_server" \
    >"$work/peers"
for name in ${PEERS-raw tokio go libuv redis}; do
    status=0
    peer "$name" >>"$work/peers" 2>"$work/said" || status=$?
    [ "$status" -eq 0 ] || cat "$work/said" >&2
    case $status in
    0) ;;
    3) echo "left out: $name" >&2 ;;
    *) fail "$name could not be built" ;;
    esac
done

# start_redis  As start of server.sh, under timeout; sets $redis.
start_redis() {
    tries=0
    while [ $((tries += 1)) -le 20 ]; do
        port=$((20000 + ($$ + tries * 37) % 12000))
        : >"$work/server"
        taskset -c "$server_cpus" timeout "$limit" redis-server --bind 127.0.0.1 --port "$port" \
            --save '' --appendonly no >"$work/server" &
        server=$!
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            sleep 0.1
            redis=$(sed -n 's/.* pid=\([0-9]*\),.*/\1/p' "$work/server")
            if grep -q 'Ready to accept' "$work/server"; then return 0; fi
            kill -0 "$server" 2>/dev/null || break
        done
        kill -TERM "$server" 2>/dev/null || :
        wait "$server" || :
        server=
    done
    fail 'redis-server does not start'
}

# used PID  CPU time in us and voluntary context switches of all threads so far.
used() {
    cat "/proc/$1/task/"*/schedstat "/proc/$1/task/"*/status | awk '
        NF == 3 && /^[0-9]/ { ns += $1 }
        $1 == "voluntary_ctxt_switches:" { wakes += $2 }
        END { printf "%.0f %.0f\n", ns / 1000, wakes }'
}

# run_load  Runs the client against the current server.
run_load() {
    # shellcheck disable=SC2086 # words
    taskset -c "$client_cpus" "$bin/load" $load --port "$port" --seconds "$each" >"$work/load" ||
        fail "the client found errors: $id, $name: $(cat "$work/load")"
}

# measure NAME PROGRAM  One run, as a line of $work/runs.
measure() {
    name=$1
    if [ "$name" = redis ]; then
        start_redis
        before=$(used "$redis")
        run_load
        echo "$before $(used "$redis")" |
            awk '{ print "cpu_us", $3 - $1; print "wakes", $4 - $2 }' >"$work/used"
        stop
        redis=
    else
        [ "$name" != tokio1 ] || workers=0
        start taskset -c "$server_cpus" "$2" "$mode" "$workers" "$limit"
        run_load
        stop
        cp "$work/server" "$work/used"
    fi
    n=$(value requests "$work/load")
    echo "$id $name $(value per_second "$work/load") $(value cpu_us "$work/used") \
$(value p50_us "$work/load") $(value p99_us "$work/load") $(value wakes "$work/used") $n" |
        awk '{ print $1, $2, $3, $4 / $8, $5, $6, $7 / $8 }' >>"$work/runs"
}

# ---- rounds

# turned ROUND  The lines of the peers rotated by the round, every other time reversed.
turned() {
    awk -v by="$1" '
        { line[NR - 1] = $0 }
        END { for (i = 0; i < NR; i++) print line[((by % 2 ? i : -i) + by + NR * NR) % NR] }
    ' "$work/peers"
}

: >"$work/runs"
round=0
while [ $((round += 1)) -le "$pairs" ]; do
    turned "$round" >"$work/order"
    for id in "$@"; do
        while read -r name _ program <&3; do
            row "$id"
            case $name-$mode-$workers in
            redis-echo-* | redis-http-* | redis-udp-* | tokio1-*-2) ;;
            *) measure "$name" "$program" ;;
            esac
        done 3<"$work/order"
        [ ! -t 2 ] || printf '\rround %d of %d, %-4s' "$round" "$pairs" "$id" >&2
    done
done
[ ! -t 2 ] || echo >&2

awk -v json="${BENCH_JSON:-}" "$(cat "$here/ratio.awk")"'
function median(row, who, what,    i) {
    for (i = 1; i <= n[row, who]; i++) x[i] = at[row, who, what, i]
    return median_x(n[row, who])
}
# The ratio of a figure of a over that of b, in each round.  Leaves the ratios in x.
function ratio(row, a, b, what,    i) {
    for (i = 1; i <= n[row, a]; i++) x[i] = quotient(at[row, a, what, i], at[row, b, what, i])
    return median_x(n[row, a])
}
function between(k) { return low_x(k) == "" ? "" : sprintf("%.2f..%.2f", low_x(k), high_x(k)) }
function or_null(v) { return v == "" ? "null" : sprintf("%.4f", v) }
function in_json(name, middle, k) {
    return sprintf("\"%s_ratio\":%.4f,\"%s_low\":%s,\"%s_high\":%s", name, middle, name,
                   or_null(low_x(k)), name, or_null(high_x(k)))
}
FNR == NR { version[$1] = $2; gsub(/_/, " ", version[$1]); name[++names] = $1; next }
{
    if (!($1 in seen)) { seen[$1] = 1; row[++rows] = $1 }
    k = ++n[$1, $2]
    for (i = 3; i <= 7; i++) at[$1, $2, i, k] = $i
}
END {
    format = "%-5s %-7s %9s %9s %9s %9s %8s  %7s %-12s %7s %-12s\n"
    printf format, "row", "peer", "/s", "p50 us", "p99 us", "cpu us", "wakes", "cpu x", "95 %", \
        "/s x", "95 %"
    for (r = 1; r <= rows; r++) for (w = 1; w <= names; w++) {
        id = row[r]; who = name[w]; k = n[id, who]
        if (!k) continue
        rate = median(id, who, 3); p50 = median(id, who, 5); p99 = median(id, who, 6)
        wakes = median(id, who, 7); cpu = median(id, who, 4)
        wall = ratio(id, "volt", who, 3); wall_95 = between(k); wall_json = in_json("wall", wall, k)
        work = ratio(id, who, "volt", 4); work_95 = between(k); work_json = in_json("cpu", work, k)
        is_base = who == "volt"
        printf format, id, who, sprintf("%.0f", rate), sprintf("%.1f", p50), \
            sprintf("%.1f", p99), sprintf("%.3f", cpu), sprintf("%.3f", wakes), \
            is_base ? "" : sprintf("%.3f", work), is_base ? "" : work_95, \
            is_base ? "" : sprintf("%.3f", wall), is_base ? "" : wall_95
        if (json != "") printf "{\"row\":\"%s\",\"peer\":\"%s\",\"version\":\"%s\",\"pairs\":%d," \
            "%s,%s,\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"wakes_per_op\":%.4f}\n", \
            id, who, version[who], k, wall_json, work_json, rate, p50, p99, wakes
    }
}' "$work/peers" "$work/runs"
