#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/cares.c and the tests of volt_cares.h with dnsmasq, which has names of its
# own only.
#
#   tests/adapters/cares.sh DIRECTORY     with plain/cares and {plain,asan,tsan}/test_cares
#
# Needs dnsmasq and valgrind. The caller sets a time limit.
set -eu
bin=$1
name=cares
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
PATH=$PATH:/usr/sbin # of dnsmasq

claim() { echo "$name: $*"; }

# A free port is found by trying. The test serves up.test at another port.
serve() {
    for attempt in 1 2 3 4 5 6 7 8; do
        port=$(((($$ + attempt) * 7919) % 25000 + 7000))
        CARES_UPSTREAM=$((port + 1))
        : >"$work/log"
        dnsmasq --keep-in-foreground --port="$port" --listen-address=127.0.0.1 --bind-interfaces \
            --conf-file=/dev/null --pid-file= --user="$(id -un)" --no-resolv --no-hosts \
            --cache-size=0 --local=/test/ --log-facility="$work/log" \
            --host-record=one.test,192.0.2.1 --host-record=two.test,192.0.2.2 \
            --host-record=both.test,192.0.2.2,2001:db8::2 --cname=alias.test,one.test \
            --txt-record=text.test,'no address' --server="/up.test/127.0.0.1#$CARES_UPSTREAM" \
            $(seq -f '--host-record=many.test,198.51.100.%.0f' 100) 2>"$work/errors" &
        server=$!
        until grep -q started "$work/log" || ! kill -0 "$server" 2>/dev/null; do sleep 0.1; done
        ! grep -q started "$work/log" || return 0
    done
    fail "dnsmasq did not start: $(cat "$work/errors" "$work/log")"
}
serve
CARES_SERVER=127.0.0.1:$port
export CARES_SERVER CARES_UPSTREAM

timeout 20 "$bin/plain/cares" "$CARES_SERVER" one.test two.test none.test 192.0.2.7 >"$work/out" ||
    fail "cares: exit status $?"
sed -n '/^\/\/ that knows/,/^[^\/]/s|^// ||p' "$here/../../examples/adapters/cares.c" |
    sed 1d >"$work/want"
diff "$work/want" "$work/out" || fail 'cares: not the expected output'
claim 'the program prints the output that it promises'

for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 200 "$bin/$form/test_cares" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=5 timeout 200 valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --log-file="$work/valgrind.%p" \
    "$bin/plain/test_cares" || {
    grep -hv '^--' "$work"/valgrind.* >&2 # its own warnings, of system calls that it lacks
    fail 'valgrind found errors'
}
claim 'valgrind finds no error and no leak'
stop
