#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the tests of volt_nghttp2.h and those that build on it; and examples/adapters/nghttp2.c, with
# and without TLS, against curl, nghttp, h2load, the openssl command, and clients that die or stop
# reading or sending.
#
#   tests/adapters/nghttp2.sh DIRECTORY     with plain/nghttp2 and {plain,asan,tsan}/test_nghttp2
#
# Needs nghttp and h2load (Debian: nghttp2-client), curl, openssl and valgrind. The caller sets a
# time limit.
set -eu
bin=$1
name=nghttp2
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
claim() { echo "$name: $*"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    claim "$1"
}
# get OPTION... PATH  Runs curl with the options of this server.
get() {
    # shellcheck disable=SC2086
    timeout 60 curl -sS $how "$@" 2>>"$work/errors"
}
load() {
    timeout 100 h2load "$@" >"$work/load" 2>&1 || fail "h2load: $(cat "$work/load")"
    sed -n 's/^requests: \([0-9]*\) total.* \([0-9]*\) succeeded.*/\1 of \2/p' "$work/load"
}

requests() { # SCHEME
    at=$1://127.0.0.1:$port
    same "$1: GET" hello "$(get "$at/")"
    same "$1: the protocol is HTTP/2" '404 2' \
        "$(get -o "$work/out" -w '%{http_code} %{http_version}' "$at/missing")"
    same "$1: HEAD and PUT are refused" '405 405' \
        "$(get -I -o "$work/out" -w '%{http_code} ' "$at/")$(get -X PUT -d x -o "$work/out" \
            -w '%{http_code}' "$at/")"
    same "$1: 8 MB come whole" 8000000 "$(get "$at/bytes/8000000" | wc -c)"
    get --data-binary "@$work/random" -X POST "$at/echo" | cmp - "$work/random" ||
        fail "$1: the echo is another text"
    claim "$1: an echo of 4 MB is the same, both ways at once"
    for n in $(seq 1000 1099); do echo "$at/bytes/$n"; done >"$work/urls"
    # shellcheck disable=SC2046
    same "$1: 100 bodies at once" 104950 "$(timeout 60 nghttp -y $(cat "$work/urls") | wc -c)"
    same "$1: 4000 small requests of 10 clients, 40 at once each" '4000 of 4000' \
        "$(load -n 4000 -c 10 -m 40 "$at/")"
    same "$1: 200 bodies of 200 KB, 20 at once" '200 of 200' \
        "$(load -n 200 -c 4 -m 20 "$at/bytes/200000")"
    same "$1: 300 uploads, 100 at once" '300 of 300' \
        "$(load -n 300 -c 3 -m 100 -d "$work/upload" "$at/echo")"
}
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }
# send FILE  Sends bytes by TLS, and prints those of the answer until the server ends.
send() {
    timeout 100 openssl s_client -quiet -alpn h2 -connect "127.0.0.1:$port" <"$1" \
        2>>"$work/errors"
}
# frames NAME FRAME  Makes such a file. The GOAWAY at the end makes the server end the connection
# behind the request.
frames() {
    to=$work/$1
    printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' >"$to"
    # shellcheck disable=SC2059
    printf "$2" >>"$to"
    printf '\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0' >>"$to"
}
connect() {
    frames connect '\0\0\021\1\5\0\0\0\1\2\7CONNECT\101\6test:1'
    same 'https: CONNECT, which has no path, is refused' 1 "$(send "$work/connect" | grep -ac 405)"
    same 'https: the server goes on' hello "$(get "https://127.0.0.1:$port/")"
}
# A POST whose body never comes. Meanwhile others are served.
silent_upload() {
    frames silent '\0\0\014\1\4\0\0\0\1\203\206\4\5/echo\101\1t'
    send "$work/silent" >"$work/silent.answer" &
    silent=$!
}
silent_upload_is_left() {
    wait "$silent" || fail 'a silent upload was not left'
    claim 'https: an upload that is silent is left, and its connection ends'
}
# A client that stops reading, and one that dies, while others are served.
hostile() { # SCHEME
    at=$1://127.0.0.1:$port
    before=$(memory)
    # shellcheck disable=SC2086
    curl -s $how --limit-rate 1 "$at/bytes/900000000" >"$work/slow" &
    slow=$!
    # shellcheck disable=SC2086
    curl -s $how "$at/bytes/900000000000" >/dev/null &
    dies=$!
    sleep 1
    kill -STOP "$slow"
    kill -KILL "$dies"
    wait "$dies" 2>/dev/null || :
    same "$1: beside a client that does not read, and behind one that died" hello "$(get "$at/")"
    after=$(memory)
    [ "$((after - before))" -lt 8192 ] || fail "$1: memory has grown from $before to $after KiB"
    claim "$1: they take no memory"
    kill -CONT "$slow"
    kill -KILL "$slow"
    wait "$slow" 2>/dev/null || :
}

head -c 4000000 /dev/urandom >"$work/random"
head -c 30000 /dev/urandom >"$work/upload"
openssl req -x509 -newkey ed25519 -nodes -keyout "$work/key" -out "$work/chain" \
    -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -days 2 2>"$work/errors" ||
    fail "no certificate: $(cat "$work/errors")"

H2_PROGRAM=$bin/plain/nghttp2
export H2_PROGRAM
for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 200 "$bin/$form/test_nghttp2" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=5 timeout 250 valgrind -q --error-exitcode=9 --leak-check=full \
    "$bin/plain/test_nghttp2" 2>"$work/errors" || fail "valgrind: $(grep '^==' "$work/errors")"
claim 'valgrind finds no error and no leak in the tests'

how=--http2-prior-knowledge
start "$bin/plain/nghttp2" 127.0.0.1:0 2>"$work/log"
requests http
hostile http
same 'http: HTTP/1.1 is refused' '' "$(timeout 10 curl -s --http1.1 "http://127.0.0.1:$port/" || :)"
get "http://127.0.0.1:$port/bytes/4000000" --limit-rate 2M >"$work/out" &
rest=$!
sleep 0.5
stop
wait "$rest" || fail 'a transfer that was in progress failed'
same 'http: a stop completes the transfer in progress' 4000000 "$(wc -c <"$work/out")"

how="--http2 --cacert $work/chain"
start "$bin/plain/nghttp2" 127.0.0.1:0 "$work/chain" "$work/key" 2>"$work/log"
silent_upload
requests https
hostile https
connect
silent_upload_is_left
same 'https: a client without h2 is refused' '' \
    "$(timeout 10 curl -s --http1.1 --cacert "$work/chain" "https://127.0.0.1:$port/" || :)"
same 'https: ALPN chooses h2' 'ALPN protocol: h2' \
    "$(timeout 10 openssl s_client -alpn http/1.1,h2 -connect "127.0.0.1:$port" </dev/null 2>&1 |
        grep '^ALPN')"
stop

valgrind -q --error-exitcode=9 --leak-check=full "$bin/plain/nghttp2" 127.0.0.1:0 \
    "$work/chain" "$work/key" >"$work/server" 2>"$work/errors" &
server=$!
port=
for _ in $(seq 300); do # starts more slowly than start waits
    port=$(value port "$work/server")
    [ -z "$port" ] || break
    sleep 0.1
done
same 'valgrind: GET' hello "$(get "https://127.0.0.1:$port/")"
get --data-binary "@$work/upload" -X POST "https://127.0.0.1:$port/echo" | cmp - "$work/upload" ||
    fail 'valgrind: the echo'
[ "$(load -n 50 -c 2 -m 10 "https://127.0.0.1:$port/bytes/20000")" = '50 of 50' ] ||
    fail "valgrind: $(cat "$work/load")"
kill -TERM "$server"
wait "$server" || fail "valgrind: $(grep '^==' "$work/errors")"
server=
claim 'valgrind finds no error and no leak in the server'
