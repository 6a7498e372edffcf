#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/glib.c, the tests of volt_glib.h in main loops of GLib, and lws.c with
# clients.
#
#   tests/adapters/glib.sh DIRECTORY     with plain/glib, {plain,asan}/lws and
#                                        {plain,asan,tsan}/test_glib
#
# Needs GLib, libwebsockets, python3-websockets, valgrind and strace. The caller sets a time limit.
set -eu
bin=$1
name=glib
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"

claim() { echo "$name: $*"; }

timeout 20 "$bin/plain/glib" >"$work/out" || fail "glib: exit status $?"
sed -n '/^\/\/ Expected output/,/^[^\/]/s|^// ||p' "$here/../../examples/adapters/glib.c" |
    sed 1d >"$work/want"
diff "$work/want" "$work/out" || fail 'glib: not the expected output'
claim 'the program prints the output that it promises'

for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 120 "$bin/$form/test_glib" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=10 timeout 200 valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --log-file="$work/valgrind.%p" \
    "$bin/plain/test_glib" || {
    grep -hv '^--' "$work"/valgrind.* >&2 # its own warnings, of system calls that it lacks
    fail 'valgrind found errors'
}
claim 'valgrind finds no error and no leak'

# calls MS  Prints the number of system calls of a test whose task sleeps for MS.
calls() {
    IDLE_MS=$1 strace -f -c -o "$work/calls" "$bin/plain/test_glib" \
        loop_sleeps_while_tasks_sleep >"$work/out" 2>&1 || fail "strace: $(cat "$work/out")"
    awk '$NF == "total" { print $4 }' "$work/calls"
}
short=$(calls 50) long=$(calls 2000)
[ "$short" -gt 50 ] && [ "$long" -le "$((short + 10))" ] ||
    fail "system calls: $short with a sleep of 50 ms, $long with one of 2 s"
claim "a sleep of 2 s takes as many system calls as one of 50 ms: $long and $short"

# lws NAME COMMAND...  The last two clients end the server, which must then have no tasks of others,
# and exit with status 0.
lws() {
    form=$1
    shift
    start "$@" 0
    timeout 60 /usr/bin/python3 "$here/lws_client.py" "$port" "$server" ||
        fail "lws, $form: $(cat "$work/server")"
    wait "$server" || fail "lws, $form: exit status $?: $(cat "$work"/lws.* "$work/server")"
    server=
    tasks=$(value tasks "$work/server")
    [ "$tasks" = 2 ] || fail "lws, $form: at the end there are 2 clients and $tasks tasks"
    claim "libwebsockets and volt serve clients in one thread, $form"
}
lws plain "$bin/plain/lws"
lws asan "$bin/asan/lws"
# GLib's thread for signals is never joined: possible leaks do not count.
lws valgrind valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite --log-file="$work/lws.valgrind" "$bin/plain/lws"
