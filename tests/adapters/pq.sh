#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/pq.c and the test of volt_pq.h with a PostgreSQL server of its own, on a
# unix socket and a port of 127.0.0.1.
#
#   tests/adapters/pq.sh DIRECTORY     with plain/pq and {plain,asan,tsan}/test_pq
#
# Needs PostgreSQL, openssl, valgrind, and as root setpriv: the server refuses to run as root. The
# caller sets a time limit.
set -eu
bin=$1
name=pq
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
LC_ALL=C
export LC_ALL
initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
programs=$(dirname "$(readlink -f "$initdb")")
data=$work/data
as_user=
[ "$(id -u)" != 0 ] || as_user='setpriv --reuid=nobody --regid=nogroup --clear-groups'

# Replaces that of server.sh.
cleanup() {
    [ ! -e "$data/postmaster.pid" ] ||
        $as_user "$programs/pg_ctl" -D "$data" -m immediate -w stop >>"$work/log" 2>&1 || :
    rm -rf "$work"
}
claim() { echo "$name: $*"; }
# Creates the files of the server: the user "test" needs no password, "guarded" needs one.
create() {
    mkdir "$data" "$work/sockets"
    openssl req -x509 -newkey ed25519 -nodes -keyout "$work/key" -out "$work/certificate" \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -days 2 \
        2>"$work/log" || fail "no certificate: $(cat "$work/log")"
    chmod 711 "$work"
    chmod 600 "$work/key"
    : >"$work/log"
    [ -z "$as_user" ] || chown -R nobody:nogroup "$data" "$work/sockets" "$work/key" "$work/log"
    $as_user "$programs/initdb" -D "$data" -U test -A trust -E UTF8 --locale=C --no-sync \
        >>"$work/log" 2>&1 || fail "initdb: $(tail -n 5 "$work/log")"
    {
        echo 'local all guarded scram-sha-256'
        echo 'local all all trust'
        echo 'hostssl all all 127.0.0.1/32 trust'
    } >"$data/pg_hba.conf"
    cat >>"$data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
unix_socket_directories = '$work/sockets'
ssl = on
ssl_cert_file = '$work/certificate'
ssl_key_file = '$work/key'
fsync = off
shared_buffers = 16MB
max_connections = 60
END
}
# Starts the server on a port that is free.
serve() {
    for attempt in 1 2 3 4 5 6 7 8; do
        PGPORT=$(((($$ + attempt) * 7919) % 25000 + 7000))
        echo "port = $PGPORT" >>"$data/postgresql.conf"
        $as_user "$programs/pg_ctl" -D "$data" -l "$work/log" -w -t 60 start >/dev/null 2>&1 &&
            return 0
    done
    fail "the server did not start: $(tail -n 5 "$work/log")"
}

cd "$here/../.."
create
serve
PGHOST=$work/sockets PGUSER=test PGDATABASE=postgres PQ_CERTIFICATE=$work/certificate
export PGHOST PGPORT PGUSER PGDATABASE PQ_CERTIFICATE
PQ_RESTART="$as_user $programs/pg_ctl -D $data -l $work/log -m fast -w -t 60 restart"
export PQ_RESTART
"$programs/psql" -qc "CREATE USER guarded PASSWORD 'open sesame'"

timeout 60 "$bin/plain/pq" >"$work/out" 2>"$work/errors" || fail "pq: $(cat "$work/errors")"
sed -n '/^\/\/ Expected output:/,/^#/s/^\/\/ //p' examples/adapters/pq.c | tail -n +2 >"$work/want"
cmp "$work/out" "$work/want" || fail "pq printed: $(cat "$work/out")"
claim 'the program prints the output that it promises'
for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 200 "$bin/$form/test_pq" || fail "the $form form failed"
done
export PQ_UNDER_VALGRIND=1 TEST_TIMEOUT_FACTOR=5
timeout 250 valgrind -q --error-exitcode=9 --leak-check=full \
    --show-leak-kinds=definite,possible --errors-for-leak-kinds=definite,possible \
    "$bin/plain/test_pq" 2>"$work/errors" || fail "valgrind: $(grep '^==' "$work/errors")"
claim 'valgrind finds no error and no leak'
