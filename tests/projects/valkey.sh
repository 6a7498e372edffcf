#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds Valkey with a backend of examples/projects in place of its ae_epoll.c, and runs its own
# tests. It is not part of `make everything`, which fetches no source.
#
#   tests/projects/valkey.sh SOURCE epoll|pollset|guest [TEST...]
#
# SOURCE is a tree of Valkey, of which this makes a copy beside it. epoll: as it is. In the form
# guest a task of volt ticks every ms in each server, unless AE_NO_TICK is set. Each tick is a round
# of the loop, which two tests of unit/info count. TEST: such as unit/expire; default:
# unit/type/string. Prints the number of the tests that passed. Needs tclsh.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
source=$(cd "$1" && pwd)
form=$2
shift 2
[ $# -gt 0 ] || set -- unit/type/string
tree=$source.$form
[ -d "$tree" ] || cp -r "$source" "$tree"
case $form in
epoll) ;;
pollset | guest)
    sed -i 's/#include "ae_epoll.c"/#include "ae_volt.h"/' "$tree/src/ae.c"
    cat >"$tree/new.h" <<END
#define VOLT_IMPLEMENTATION
#include "$root/volt.h"
typedef struct {
    volt_frame frame;
    volt_interval every;
    int64_t n_missed;
} ae_ticker;
__attribute__((unused)) static volt_poll ae_ticker_run(volt_cx *cx, void *arg) {
    ae_ticker *t = (ae_ticker *)arg;
    VOLT_BEGIN(cx, t);
    if (getenv("AE_NO_TICK")) VOLT_RETURN(0);
    volt_interval_init(&t->every, VOLT_MS(1));
    t->every.missed = VOLT_MISSED_SKIP;
    do VOLT_AWAIT(t->n_missed, volt_interval_next(cx, &t->every));
    while (t->n_missed >= 0);
    VOLT_END(t->n_missed);
}
#define AE_GUEST_STARTED(rt_) \\
    do if (VOLT_RT_SPAWN((rt_), NULL, ae_ticker_run, (ae_ticker){ .n_missed = 0 }) < 0) abort(); \\
    while (0)
#include "$root/examples/projects/ae_$form.h"
END
    cmp -s "$tree/new.h" "$tree/src/ae_volt.h" || cp "$tree/new.h" "$tree/src/ae_volt.h"
    ;;
*) exit 2 ;;
esac
make -C "$tree" -s -j"${JOBS:-2}" MALLOC=libc CFLAGS="-I$root" >"$tree/make.log" 2>&1 || {
    tail -n 30 "$tree/make.log"
    exit 1
}
cd "$tree"
# The backend in use, and the wake-ups of an idle server in a second, by itself and by its guest.
src/valkey-server --port 0 --unixsocket ./s --save '' >server.log &
server=$!
trap 'kill "$server" 2>/dev/null || :' EXIT
until src/valkey-cli -s ./s ping >ping.log 2>&1; do
    kill -0 "$server" 2>/dev/null || { cat server.log && exit 1; }
    sleep 0.1
done
wakes() { awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$server/status"; }
before=$(wakes)
sleep 1
wakes=$(($(wakes) - before))
api=$(src/valkey-cli -s ./s info server | sed -n 's/^multiplexing_api:\([^\r]*\).*/\1/p')
kill "$server"
wait "$server" || :

tests=
for test; do tests="$tests --single $test"; done
rc=0
# shellcheck disable=SC2086 # a list of words
./runtest --clients "${CLIENTS:-2}" --tags -slow $tests >tests.log 2>&1 || rc=$?
said() { sed 's/\x1b\[[0-9;]*m//g' tests.log | grep -a -c "$1" || :; }
printf 'valkey over %s, which wakes %d times per second when idle: %d passed, %d failed\n' \
    "$api" "$wakes" "$(said '^\[ok\]')" "$(said '^\[err\]\|^\[exception\]')"
exit "$rc"
