#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The gain of more workers (X1), and the cost of too many (X2), by volt.h and by the existing peers.
#
#   bench/tools/scale.sh [X1|X2]       default: both
#
# X1  1, 2, 4 .. workers, each run on as many CPUs: the speed-up over 1 worker of the same program
# X2  2, 4, 8, 16 and 64 workers on all CPUs, alone, and beside one process that computes
#
# Rows: S1; S8w (bench/rows/scale.c), which is S8 with 1 us of work at each yield; S10; and N4, the
# echo server with 64-byte messages on 100 connections for each worker, whose client has as many
# threads as the server, on the same CPUs in X2 and on the others in X1, if there are any.
#
# Environment, with its defaults: BIN=build/bench  PEERS=build/peers (programs one directory below,
# which give the rows that they name by --list; those named *-net serve N4)  RUNS=5  REPS=3
# ROWS='S1 S8w S10 N4'  CPUS=number of CPUs  WORKERS=1, 2, 4 .. CPUS (X1)  CROWDS='2 4 8 16 64' (X2)
# SECONDS_N4=2  BENCH_JSON=1: a line of JSON for each figure, too
#
# Figures are medians of RUNS runs, in each of which every program does everything once; ns and cpu
# are per operation. Counts of CPUs begin with CPU 0, so set CPUS where hyperthreads come last.
set -eu
# shellcheck source=bench/tools/server.sh
. "$(dirname "$0")/server.sh" # work, fail, start, stop, value
bin=${BIN:-build/bench}
peers=${PEERS:-build/peers}
runs=${RUNS:-5}
rows=${ROWS:-S1 S8w S10 N4}
cpus=${CPUS:-$(getconf _NPROCESSORS_ONLN)}
all_cpus=$(getconf _NPROCESSORS_ONLN)
crowds=${CROWDS:-2 4 8 16 64}
what=${1:-X1 X2}
for tool in taskset timeout; do
    command -v "$tool" >/dev/null || fail "$tool is missing: packages util-linux, coreutils"
done
case $what in
X1 | X2 | 'X1 X2') ;;
*) fail "X1 or X2" ;;
esac

workers=${WORKERS:-}
if [ -z "$workers" ]; then
    n=1
    while [ "$n" -lt "$cpus" ] && [ "$n" -lt 64 ]; do
        workers="$workers $n"
        n=$((n * 2))
    done
    [ "$cpus" -le 64 ] && workers="$workers $cpus" || workers="$workers 64"
fi

computing=
trap '[ -z "$computing" ] || kill "$computing" 2>/dev/null || :; cleanup' EXIT

# ---- the program of each row: lines "row name path"

make -s "$bin/sched" "$bin/scale" "$bin/echo_server" "$bin/load"
# Programs that take one worker only are left out.
rows_of() {
    timeout 10 "$2" --list </dev/null >"$work/list" 2>/dev/null || return 0
    timeout 60 "$2" "$(head -n 1 "$work/list")" --workers 2 --reps 1 </dev/null >/dev/null 2>&1 ||
        return 0
    for row in $rows; do
        [ "$row" = N4 ] || ! grep -qx "$row" "$work/list" || echo "$row $1 $2"
    done
}
{
    for name in sched scale; do rows_of volt "$bin/$name"; done
    case " $rows " in *' N4 '*) echo "N4 volt $bin/echo_server" ;; esac
    for path in "$peers"/*/*; do
        if [ ! -f "$path" ] || [ ! -x "$path" ]; then continue; fi
        name=${path#"$peers/"}
        case $name in
        *[-_]net)
            case " $rows " in *' N4 '*) echo "N4 ${name%%/*} $path" ;; esac
            ;;
        *) rows_of "$name" "$path" ;;
        esac
    done
} >"$work/programs"
for row in $rows; do
    grep -q "^$row volt " "$work/programs" || echo "$row: no program in $bin has it" >&2
done

# ---- one run: adds "experiment row name workers beside ns cpu" to $work/figures

# compute WORKERS CPUS PROGRAM ROW  Sets $figures to "ns cpu".
compute() {
    taskset -c "$2" "$3" "$4" --workers "$1" --reps "${REPS:-3}" \
        </dev/null >"$work/out" 2>"$work/err" || {
        cat "$work/err" >&2
        fail "$3 $4 --workers $1"
    }
    figures=$(awk -v row="$4" '
        $1 == "row" { for (i = 1; i <= NF; i++) at[$i] = i - ($4 == "ns") } # "min ns": one column
        $1 == row { print $at["median"], $at["cpu"] }
    ' "$work/out")
}
# serve WORKERS CPUS CLIENT_CPUS PROGRAM  The same of a request.
serve() {
    limit=100 # seconds until the server ends by itself
    case $4 in
    */echo_server) start taskset -c "$2" "$4" 0 "$1" "$limit" ;;
    *) start taskset -c "$2" "$4" echo "$1" "$limit" ;;
    esac
    taskset -c "$3" "$bin/load" --port "$port" --conns $((100 * $1)) --threads "$1" \
        --seconds "${SECONDS_N4:-2}" </dev/null >"$work/load" || fail "$4: the client found errors"
    stop
    figures=$(awk -v rate="$(value per_second "$work/load")" \
        -v n="$(value requests "$work/load")" -v cpu="$(value cpu_us "$work/server")" \
        'BEGIN { print 1e9 / rate, cpu * 1000 / n }')
}
# once EXPERIMENT BESIDE WORKERS CPUS CLIENT_CPUS
once() {
    while read -r row name path; do
        if [ "$row" = N4 ]; then serve "$3" "$4" "$5" "$path"
        else compute "$3" "$4" "$path" "$row"; fi
        [ -n "$figures" ] || fail "$path gave no figures for $row"
        echo "$1 $row $name $3 $2 $figures" >>"$work/figures"
    done <"$work/programs"
}

: >"$work/figures"
everywhere=0-$((all_cpus - 1))
round=0
while [ $((round += 1)) -le "$runs" ]; do
    for experiment in $what; do
        [ "$experiment" != X1 ] || for n in $workers; do
            client=$n-$((all_cpus - 1))
            [ "$n" -lt "$all_cpus" ] || client=$everywhere
            once X1 alone "$n" "0-$((n - 1))" "$client"
        done
        [ "$experiment" != X2 ] || for n in $crowds; do
            once X2 alone "$n" "$everywhere" "$everywhere"
            while :; do :; done &
            computing=$!
            once X2 beside "$n" "$everywhere" "$everywhere"
            kill "$computing"
            wait "$computing" 2>/dev/null || :
            computing=
        done
    done
    [ ! -t 2 ] || printf '\rrun %d of %d ' "$round" "$runs" >&2
done
[ ! -t 2 ] || echo >&2

# ---- medians, in the order of the rows

sort -s -k1,1 -k2,2 -k3,3 -k4,4n -k5,5 "$work/figures" |
    awk -v json="${BENCH_JSON:-}" -v runs="$runs" '
function middle(x, n,    i, j, v) {
    for (i = 2; i <= n; i++) {
        v = x[i]
        for (j = i - 1; j > 0 && x[j] > v; j--) x[j + 1] = x[j]
        x[j + 1] = v
    }
    return (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
}
function flush(    wall, used, ratio) {
    if (n == 0) return
    wall = middle(ns, n)
    used = middle(cpu, n)
    if (experiment == "X1") {
        if (k == 1) first[row, name] = wall
        ratio = first[row, name] > 0 ? first[row, name] / wall : 0
    } else {
        if (beside == "alone") alone[row, name, k] = wall
        ratio = alone[row, name, k] > 0 ? wall / alone[row, name, k] : 0
    }
    if (experiment != titled)
        printf "%s%-4s %-24s %7s %7s %12s %12s %9s\n", titled ? "\n" : "", experiment, "program",
            "workers", "", "ns", "cpu", experiment == "X1" ? "speed-up" : "x alone"
    titled = experiment
    printf "%-4s %-24s %7d %7s %12.2f %12.2f %9.2f\n", row, name, k, beside, wall, used, ratio
    if (json)
        printf "{\"experiment\":\"%s\",\"row\":\"%s\",\"program\":\"%s\",\"workers\":%d," \
            "\"beside\":%s,\"wall_median_ns\":%.3f,\"cpu_median_ns\":%.3f,\"%s\":%.3f," \
            "\"runs\":%d}\n", experiment, row, name, k, beside == "beside" ? "true" : "false",
            wall, used, experiment == "X1" ? "speed_up" : "times_alone", ratio, runs
    n = 0
}
{
    if ($1 != experiment || $2 != row || $3 != name || $4 != k || $5 != beside) flush()
    experiment = $1; row = $2; name = $3; k = $4; beside = $5
    ns[++n] = $6
    cpu[n] = $7
}
END { flush() }'
