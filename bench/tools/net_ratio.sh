#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The network rows by volt.h, a bare epoll loop, Tokio, Go, libuv, Redis, and as relays socat and
# HAProxy.
#
#   bench/tools/net_ratio.sh [ROW...]     default: all
#
#   N1       64 bytes there and back, 1 connection; N1s: client and server on one CPU
#   N2a N2b  512 bytes there and back, 100 and 1000 connections; N2c: N2b by servers whose
#            connections hold no buffer while they wait; volt.h by volt_read_ready
#   N3       a stream: 4 connections with 32 messages of 512 bytes under way on each
#   N4       N2a with 2 workers on both CPUs, and the client, with 2 threads, there too
#   N5a N5b  HTTP/1.1 with keep-alive, 50 connections, with 1 and 16 requests under way on each
#            by Tokio's hyper and Go's net/http, which know more of HTTP than the parser of the
#            others, bench/servers/serve.h; net/http writes each answer by itself
#   N5c N5d  Redis' PING, the same;  N5cs N5ds: SET and GET in turn
#   N6       connect, accept, 64 bytes there and back, close: 8 clients at a time
#   N7u N7w  datagrams of 64 bytes, 1 and 16 under way, a system call for each
#   N7v      the same, 64 under way, and many for each system call: volt_recvmmsg, volt_sendmmsg;
#            both sides on one CPU, of the class SCHED_BATCH, so that neither wakes for each one
#   N7s N7r  bursts of 32 datagrams of 1200 bytes, which the kernel takes apart and joins: sent by
#            the server, by volt_send_segments, and received by it, by volt_recv_segments, 4 bursts
#            under way; Tokio's by quinn-udp. Each datagram counts
#   N8       10,000 connections, each used once, then idle: bytes of anonymous memory of the server
#            for each, beyond those that it has with one connection
#   N9a N9b  relays to another server, by volt_relay, socat, HAProxy with splicing: streams on 4
#            connections, one way, in MiB; and 512 bytes there and back through them, 50 connections
#
# Environment, with its defaults:
#   BIN=build/bench  PAIRS=21  EACH=1   seconds of a run
#   PEERS="raw tokio go libuv redis socat haproxy"    tokio1: Tokio's scheduler of one thread; spin:
#                                       volt.h with .spin_us 20
#   BENCH_JSON=                         set: a line of JSON for each row and peer as well
#
# Peers are built to build/peers; those that cannot be built are named and left out. The server has
# one worker on CPU 0, the client CPU 1, unless a row says otherwise; all run on CPU 0 if there is
# no other. Every server runs once in a round, in an order that rotates, so that a drift of the
# machine affects all; a server or client that is left behind ends by itself. Columns:
#   /s, p50, p99      requests per second, and latency in us: medians of the rounds
#   cpu, wakes        of the server for a request: user and system time in us, and the number of
#                     times that one of its threads slept and was woken. Those of socat, which has a
#                     process for each connection, in ticks of the system
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
limit=90 # seconds until a server ends by itself
foreign= # the process of a server that is not ours: $server, or its child
backend= # the server behind a relay
end_foreign() {
    [ -n "$foreign" ] || return 0
    kill -KILL "$foreign" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
}
end_backend() {
    [ -n "$backend" ] || return 0
    kill -KILL "$backend" 2>/dev/null || :
    wait "$backend" 2>/dev/null || :
    backend=
}
trap 'end_foreign; end_backend; cleanup' EXIT

command -v taskset >/dev/null || fail "taskset is missing: install the package util-linux"
make -s "$bin/net_server" "$bin/raw_epoll" "$bin/load" "$bin/bulk" "$bin/drain"
# N8 needs more than 10,000; the others 4096.
# shellcheck disable=SC3045 # most shells have it
ulimit -n 11000 2>/dev/null || ulimit -n 4096 2>/dev/null || :
other=1
[ "$(nproc)" -gt 1 ] || other=0

# row ID  Sets the parameters of the row: mode of the server, workers, CPUs, client and its load,
# operations in each of its requests, server behind a relay, and the command under which both run.
row() {
    mode=echo workers=1 server_cpus=0 client_cpus=$other client=load each_has=1 behind='' under=''
    case $1 in
    N1) load='echo --conns 1 --size 64' ;;
    N1s) load='echo --conns 1 --size 64' client_cpus=0 ;;
    N2a) load='echo --conns 100 --size 512' ;;
    N2b) load='echo --conns 1000 --size 512' ;;
    N2c) mode=idle load='echo --conns 1000 --size 512' ;;
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
    N7w) mode=udp load='udp --conns 1 --size 64 --pipeline 16' ;;
    N7v)
        mode=udp-many load='udp --conns 1 --size 64 --pipeline 64'
        client_cpus=0 under='chrt --batch 0'
        ;;
    N7s) mode=udp-send load='burst --conns 1 --pipeline 4' each_has=32 ;;
    N7r) mode=udp-receive load='flood --conns 1 --pipeline 4' each_has=32 ;;
    N8) mode=idle load="idle --conns 10000" ;;
    N9a) mode=relay client=bulk load='--conns 4' behind="$bin/drain $limit" ;;
    N9b) mode=relay load='echo --conns 50 --size 512' behind="$bin/raw_epoll echo 1 $limit" ;;
    *) fail "no such row: $1" ;;
    esac
}
[ $# -gt 0 ] || set -- N1 N1s N2a N2b N2c N3 N4 N5a N5b N5c N5d N5cs N5ds N6 \
    N7u N7w N7v N7s N7r N8 N9a N9b
for id in "$@"; do
    row "$id"
    [ -z "$under" ] || command -v "${under%% *}" >/dev/null ||
        fail "${under%% *} is missing: install the package util-linux"
done

# ---- servers

# peer NAME  Builds it, and prints name, version with _ for blanks, and program.
peer() {
    case $1 in
    spin) echo "spin .spin_us_20 $bin/net_server" ;;
    raw) echo "raw Linux_$(uname -r) $bin/raw_epoll" ;;
    tokio | tokio1) built tokio-net tokio-net "$1" ;;
    go) built go-net go-net go ;;
    libuv) built libuv-net libuv_net libuv ;;
    socat)
        installed socat socat || return 3
        echo "socat $(socat -V | sed -n 's/^socat version \([^ ]*\) .*/socat_\1/p') socat"
        ;;
    haproxy)
        installed haproxy haproxy || return 3
        echo "haproxy $(haproxy -v | sed -n 's/^HAProxy version \([^ -]*\).*/HAProxy_\1/p') haproxy"
        ;;
    redis)
        installed redis-server redis-server || return 3
        echo "redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/Redis_\1/') redis-server"
        ;;
    *) fail "no such peer: $1" ;;
    esac
}
# installed PROGRAM PACKAGE
installed() {
    command -v "$1" >/dev/null || {
        echo "$1 is missing: install the package $2" >&2
        return 3
    }
}
# built DIRECTORY PROGRAM NAME
built() {
    "$here/../peers/$1/build.sh" "build/peers/$1" || return $?
    echo "$3 $("build/peers/$1/$2" --version | tr ' ' _) build/peers/$1/$2"
}

echo "volt $(sed -n '2s|^// \([^ ]*\) \([^ ]*\) .*|\1_\2|p' "$here/../../volt.h") $bin/net_server" \
    >"$work/peers"
for name in ${PEERS-raw tokio go libuv redis socat haproxy}; do
    status=0
    peer "$name" >>"$work/peers" 2>"$work/said" || status=$?
    [ "$status" -eq 0 ] || cat "$work/said" >&2
    case $status in
    0) ;;
    3) echo "left out: $name" >&2 ;;
    *) fail "$name could not be built" ;;
    esac
done

# start_foreign NAME  As start of server.sh, for programs that choose no port; sets $foreign.
start_foreign() {
    tries=0
    while [ $((tries += 1)) -le 20 ]; do
        port=$((20000 + ($$ + tries * 37) % 12000))
        : >"$work/server"
        "run_$1" >"$work/server" 2>&1 &
        server=$!
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            sleep 0.1
            if "is_ready_$1"; then return 0; fi
            kill -0 "$server" 2>/dev/null || break
        done
        kill -TERM "$server" 2>/dev/null || :
        wait "$server" || :
        server=
    done
    fail "$1 does not start: $(cat "$work/server")"
}
# stop_foreign  Ends it; its status after a signal is not 0.
stop_foreign() {
    kill -TERM "$foreign" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
    server='' foreign=''
}

# The commands, which replace the shell that is started for them; each is under a time limit.
run_redis() {
    exec taskset -c "$server_cpus" timeout "$limit" redis-server --bind 127.0.0.1 --port "$port" \
        --save '' --appendonly no
}
is_ready_redis() {
    foreign=$(sed -n 's/.* pid=\([0-9]*\),.*/\1/p' "$work/server")
    grep -q 'Ready to accept' "$work/server"
}
# With buffers of 64 KiB; its own default of 8 is slower.
run_socat() {
    exec taskset -c "$server_cpus" timeout "$limit" socat -d -d -b 65536 \
        "TCP4-LISTEN:$port,bind=127.0.0.1,backlog=128,fork,nodelay" \
        "TCP4:127.0.0.1:$behind_port,nodelay"
}
is_ready_socat() {
    foreign=$(children "$server" | awk '{ print $1 }')
    grep -q ' listening on ' "$work/server"
}
run_haproxy() {
    cat >"$work/haproxy.cfg" <<END
global
    nbthread 1
    maxconn 256
defaults
    mode tcp
    option splice-auto
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend in
    bind 127.0.0.1:$port
    default_backend out
backend out
    server one 127.0.0.1:$behind_port
END
    exec taskset -c "$server_cpus" timeout "$limit" haproxy -db -f "$work/haproxy.cfg"
}
is_ready_haproxy() {
    foreign=$(children "$server" | awk '{ print $1 }')
    [ -n "$foreign" ] || return 1
    grep -q " $(printf '0100007F:%04X' "$port") 00000000:0000 0A " /proc/net/tcp
}
children() { cat "/proc/$1/task/$1/children" 2>/dev/null || :; }

# used PID  CPU time in us and voluntary context switches of all threads so far; and the CPU time of
# its children that have ended, in ticks.
used() {
    cat "/proc/$1/task/"*/schedstat "/proc/$1/task/"*/status "/proc/$1/stat" | awk \
        -v us="$((1000000 / $(getconf CLK_TCK)))" '
        NF == 3 && /^[0-9]/ { ns += $1 }
        $1 == "voluntary_ctxt_switches:" { wakes += $2 }
        NF > 40 { sub(/.*[)] /, ""); ended += ($14 + $15) * us }
        END { printf "%.0f %.0f\n", ns / 1000 + ended, wakes }'
}
# Waits for the end of its children, so that their time is known.
settle() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ -n "$(children "$1")" ] || return 0
        sleep 0.1
    done
    fail "$name: children are left"
}

# start_backend  Starts the server behind a relay, where the client is, and sets $behind_port.
start_backend() {
    : >"$work/backend"
    # shellcheck disable=SC2086 # words
    taskset -c "$client_cpus" $behind >"$work/backend" &
    backend=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        behind_port=$(value port "$work/backend")
        [ -z "$behind_port" ] || return 0
        sleep 0.1
    done
    fail "the server behind a relay did not start: $behind"
}

# run_load  Runs the client against the current server.
run_load() {
    seconds=$each server_option=
    [ "$mode-$client" != "idle-load" ] || [ "$id" != N8 ] || {
        seconds=30 # at most: it ends when all messages are back
        server_option="--server ${foreign:-$server}"
    }
    # shellcheck disable=SC2086 # words
    $under taskset -c "$client_cpus" "$bin/$client" $load --port "$port" --seconds "$seconds" \
        $server_option >"$work/load" ||
        fail "the client found errors: $id, $name: $(cat "$work/load")"
}

# measure NAME PROGRAM  One run, as a line of $work/runs.
measure() {
    name=$1 behind_port=
    [ -z "$behind" ] || start_backend
    case $name in
    redis | socat | haproxy)
        start_foreign "$name"
        before=$(used "$foreign")
        run_load
        [ "$name" != socat ] || settle "$foreign"
        echo "$before $(used "$foreign")" |
            awk '{ print "cpu_us", $3 - $1; print "wakes", $4 - $2 }' >"$work/used"
        stop_foreign
        ;;
    *)
        [ "$name" != tokio1 ] || workers=0
        [ "$name" != spin ] || export BENCH_SPIN_US=20
        # shellcheck disable=SC2086 # words
        start $under taskset -c "$server_cpus" "$2" "$mode" "$workers" "$limit" $behind_port
        unset BENCH_SPIN_US
        run_load
        stop
        cp "$work/server" "$work/used"
        ;;
    esac
    end_backend
    bytes=$(value server_bytes "$work/load")
    p50=$(value p50_us "$work/load") p99=$(value p99_us "$work/load")
    echo "$id $name $(value per_second "$work/load") $(value cpu_us "$work/used") ${p50:-0} \
${p99:-0} $(value wakes "$work/used") $(value requests "$work/load") $each_has ${bytes:-0}" |
        awk '{ n = $8 * $9; print $1, $2, $3 * $9, $4 / n, $5, $6, $7 / n, $10 }' >>"$work/runs"
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
            redis-resp-* | socat-relay-* | haproxy-relay-*) measure "$name" "$program" ;;
            redis-* | socat-* | haproxy-* | tokio1-*-2) ;;
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
    for (i = 3; i <= 8; i++) at[$1, $2, i, k] = $i
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
        bytes = median(id, who, 8)
        memory = ratio(id, who, "volt", 8); memory_json = in_json("bytes", memory, k)
        is_base = who == "volt"
        printf format, id, who, sprintf("%.0f", rate), sprintf("%.1f", p50), \
            sprintf("%.1f", p99), sprintf("%.3f", cpu), sprintf("%.3f", wakes), \
            is_base ? "" : sprintf("%.3f", work), is_base ? "" : work_95, \
            is_base ? "" : sprintf("%.3f", wall), is_base ? "" : wall_95
        if (bytes) printf "%-5s %-7s %9.1f bytes for a connection%s\n", id, who, bytes, \
            is_base ? "" : sprintf(", %.3f times those of volt", memory)
        if (json != "") printf "{\"row\":\"%s\",\"peer\":\"%s\",\"version\":\"%s\",\"pairs\":%d," \
            "%s,%s,\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"wakes_per_op\":%.4f," \
            "\"cpu_us\":%.4f%s}\n", id, who, version[who], k, wall_json, work_json, rate, p50, \
            p99, wakes, cpu, bytes ? sprintf(",\"bytes\":%.1f,%s", bytes, memory_json) : ""
    }
}' "$work/peers" "$work/runs"
