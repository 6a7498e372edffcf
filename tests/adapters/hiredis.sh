#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/hiredis.c and the tests of volt_hiredis.h with a Redis server.
#
#   tests/adapters/hiredis.sh DIRECTORY     with plain/hiredis and {plain,asan,tsan}/test_hiredis
#
# Needs redis-server and valgrind. The caller sets a time limit.
set -eu
bin=$1
name=hiredis
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"

claim() { echo "$name: $*"; }

# On a port that is free, and a unix socket.
serve() {
    for attempt in 1 2 3 4 5 6 7 8; do
        REDIS_PORT=$(((($$ + attempt) * 7919) % 25000 + 7000))
        : >"$work/log"
        redis-server --port "$REDIS_PORT" --bind 127.0.0.1 --unixsocket "$work/redis" \
            --dir "$work" --save '' >"$work/log" &
        server=$!
        until grep -q 'eady to accept connections' "$work/log"; do
            kill -0 "$server" 2>/dev/null || continue 2
            sleep 0.1
        done
        return 0
    done
    fail "the server did not start: $(tail -n 5 "$work/log")"
}
serve
REDIS_SOCKET=$work/redis REDIS_DIRECTORY=$work
export REDIS_PORT REDIS_SOCKET REDIS_DIRECTORY

timeout 20 "$bin/plain/hiredis" "$work/redis" >"$work/out" || fail "hiredis: exit status $?"
sed -n '/^\/\/ Expected output/,/^[^\/]/s|^// ||p' "$here/../../examples/adapters/hiredis.c" |
    sed 1d >"$work/want"
diff "$work/want" "$work/out" || fail 'hiredis: not the expected output'
claim 'the program prints the output that it promises'

for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 200 "$bin/$form/test_hiredis" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=5 timeout 200 valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --log-file="$work/valgrind.%p" \
    "$bin/plain/test_hiredis" || {
    grep -hv '^--' "$work"/valgrind.* >&2 # its own warnings, of system calls that it lacks
    fail 'valgrind found errors'
}
claim 'valgrind finds no error and no leak'
stop
