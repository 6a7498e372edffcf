#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/uloop.c and the tests of volt_uloop.h, with the stand-in in uloop/. With
# the real one too, if LIBUBOX is the path of its source: a directory with the name libubox.
#
#   tests/adapters/uloop.sh DIRECTORY     with plain/uloop and {plain,asan,tsan}/test_uloop
#
# Needs cc, valgrind and strace. The caller sets a time limit.
set -eu
bin=$1
name=uloop
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"

claim() { echo "$name: $*"; }
program() {
    timeout 20 "$1" >"$work/out" || fail "$1: exit status $?"
    sed -n '/^\/\/ Expected output/,/^[^\/]/s|^// ||p' "$here/../../examples/adapters/uloop.c" |
        sed 1d >"$work/want"
    diff "$work/want" "$work/out" || fail "$1: not the expected output"
    claim "the program prints the output that it promises, $2"
}

program "$bin/plain/uloop" 'with the stand-in'
for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 120 "$bin/$form/test_uloop" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=10 timeout 200 valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --log-file="$work/valgrind.%p" \
    "$bin/plain/test_uloop" || {
    grep -hv '^--' "$work"/valgrind.* >&2 # its own warnings, of system calls that it lacks
    fail 'valgrind found errors'
}
claim 'valgrind finds no error and no leak'

# calls MS  Prints the number of system calls of a test whose task sleeps for MS.
calls() {
    IDLE_MS=$1 strace -f -c -o "$work/calls" "$bin/plain/test_uloop" \
        loop_sleeps_while_tasks_sleep >"$work/out" 2>&1 || fail "strace: $(cat "$work/out")"
    awk '$NF == "total" { print $4 }' "$work/calls"
}
short=$(calls 50) long=$(calls 2000)
[ "$short" -gt 50 ] && [ "$long" -le "$((short + 10))" ] ||
    fail "system calls: $short with a sleep of 50 ms, $long with one of 2 s"
claim "a sleep of 2 s takes as many system calls as one of 50 ms: $long and $short"

if [ -n "${LIBUBOX:-}" ]; then
    cd "$here/../.."
    real() {
        cc -std=gnu11 -O1 -g -I. -Itests/adapters -isystem "$LIBUBOX/.." -pthread "$1" \
            "$LIBUBOX/uloop.c" -o "$work/$2"
    }
    real examples/adapters/uloop.c uloop
    real tests/adapters/uloop.c test_uloop
    program "$work/uloop" 'with the real one'
    TEST_TIMEOUT_FACTOR=3 timeout 120 "$work/test_uloop" || fail 'the real uloop failed'
fi
