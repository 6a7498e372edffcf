#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/sd.c and the tests of volt_sd.h with libsystemd.
#
#   tests/adapters/sd.sh DIRECTORY     with plain/sd and {plain,asan,tsan}/test_sd
#
# Needs valgrind. The caller sets a time limit.
set -eu
bin=$1
name=sd
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
claim() { echo "$name: $*"; }

cd "$here/../.."
timeout 60 "$bin/plain/sd" >"$work/out"
sed -n '/^\/\/ Expected output:/,/^#/s/^\/\/ //p' examples/adapters/sd.c | tail -n +2 >"$work/want"
cmp "$work/out" "$work/want" || fail "sd printed: $(cat "$work/out")"
claim 'the program prints the output that it promises'
for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 100 "$bin/$form/test_sd" || fail "the $form form failed"
done
export SD_UNDER_VALGRIND=1 TEST_TIMEOUT_FACTOR=5
timeout 200 valgrind -q --error-exitcode=9 --leak-check=full \
    "$bin/plain/test_sd" 2>"$work/errors" || fail "valgrind: $(grep '^==' "$work/errors")"
claim 'valgrind finds no error and no leak'
