#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the client of the network benchmarks against the servers in C, for a moment each: every reply
# is right, their number equals the server's, and wrong ones are noticed.
#
#   sh tests/tools/load.sh DIRECTORY     with the programs load, net_server and raw_epoll
set -eu
bin=$1
. "$(dirname "$0")/../../bench/tools/server.sh"
passed=0
failed=0

# report TITLE ERROR  The latter is empty on success.
report() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: $2"
        cat "$work/load" "$work/errors" "$work/server"
    fi
}

# ask SERVER MODE WORKERS KIND [OPTION...]  One load on one server; sets $status.
ask() {
    start "$bin/$1" "$2" "$3" 30
    kind=$4
    shift 4
    status=0
    "$bin/load" "$kind" --port "$port" --seconds 0.1 "$@" >"$work/load" 2>"$work/errors" ||
        status=$?
    stop
}

# http sends one more request than it counts.
counts() {
    asked=$(value requests "$work/load")
    [ "$1" != http ] || asked=$((asked + 1))
    answered=$(value requests "$work/server")
    [ "$asked" -eq "$answered" ] || echo "$asked requests, $answered answers"
}

# good SERVER MODE WORKERS KIND [OPTION...]
good() {
    ask "$@"
    wrong=
    [ "$status" -eq 0 ] || wrong="the client ended with status $status"
    [ -n "$wrong" ] || [ "$(value errors "$work/load")" = 0 ] || wrong='errors'
    case $wrong$* in
    *' echo '*--pipeline*) ;; # counted by reads
    "$*") wrong=$(counts "$4") ;;
    esac
    report "$*" "$wrong"
}

# bad SERVER MODE KIND  The server corrupts its replies, or uses another protocol.
bad() {
    ask "$1" "$2" 1 "$3" --conns 2
    wrong=
    [ "$status" -ne 0 ] || wrong='the client noticed nothing'
    report "$*" "$wrong"
}

for program in net_server raw_epoll; do
    good "$program" echo 1 echo --conns 20
    good "$program" echo 1 echo --conns 4 --size 512 --pipeline 32
    good "$program" echo 1 churn --conns 8
    good "$program" http 1 http --conns 6 --pipeline 16
    good "$program" resp 1 ping --conns 7 --pipeline 16
    good "$program" resp 1 set --conns 5
    good "$program" udp 1 udp --conns 2 --pipeline 16
    good "$program" echo 2 echo --conns 20 --threads 2
    good "$program" http 2 http --conns 5
    good "$program" resp 2 set --conns 6 --pipeline 16
    bad "$program" liar echo
    bad "$program" liar churn
    bad "$program" echo http
    bad "$program" echo set
    bad "$program" http ping
    bad "$program" resp http
done
echo "load: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
