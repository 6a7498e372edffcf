#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the client of the network benchmarks against the servers in C, for a moment each: every reply
# is right, their number equals the server's, and wrong ones are noticed.
#
#   sh tests/tools/load.sh DIRECTORY     with the programs load, bulk, drain, net_server and
#                                raw_epoll
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
    "$bin/load" "$kind" --port "$port" --server "$server" --seconds 0.1 "$@" >"$work/load" \
        2>"$work/errors" || status=$?
    stop
}
# A stream through a relay arrives whole, and a wrong byte in it is noticed.
relays() {
    start "$bin/drain" 30
    drain=$server
    start "$bin/$1" relay 1 30 "$port"
    for wrong in 0 1; do
        status=0 error=
        "$bin/bulk" --port "$port" --seconds 0.1 --wrong "$wrong" >"$work/load" \
            2>"$work/errors" || status=$?
        [ "$status" -eq "$wrong" ] || error="the client ended with status $status"
        report "$1 relay bulk --wrong $wrong" "$error"
    done
    stop
    server=$drain
    stop
}

# http and idle send one more request than they count.
counts() {
    asked=$(value requests "$work/load")
    case $1 in http | idle) asked=$((asked + 1)) ;; esac
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

# bad SERVER MODE KIND [OPTION...]  The server corrupts its replies, or uses another protocol.
bad() {
    program_of=$1 mode_of=$2 kind_of=$3
    shift 3
    ask "$program_of" "$mode_of" 1 "$kind_of" --conns 2 "$@"
    set -- "$program_of" "$mode_of" "$kind_of"
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
    good "$program" udp-many 1 udp --conns 2 --pipeline 40
    good "$program" udp-send 1 burst --conns 2 --pipeline 3
    good "$program" udp-receive 1 flood --conns 1 --pipeline 3
    good "$program" idle 1 echo --conns 6 --size 200000 --pipeline 2
    good "$program" idle 1 idle --conns 30 --seconds 20
    relays "$program"
    good "$program" echo 2 echo --conns 20 --threads 2
    good "$program" http 2 http --conns 5
    good "$program" resp 2 set --conns 6 --pipeline 16
    bad "$program" liar echo
    bad "$program" liar idle --seconds 5
    bad "$program" udp burst
    bad "$program" udp flood --conns 1
    bad "$program" liar churn
    bad "$program" echo http
    bad "$program" echo set
    bad "$program" http ping
    bad "$program" resp http
done
echo "load: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
