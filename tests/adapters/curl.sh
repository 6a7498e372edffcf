#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/adapters/curl.c and the tests of volt_curl.h with 06_http and nginx.
#
#   tests/adapters/curl.sh DIRECTORY     with plain/curl and {plain,asan,tsan}/test_curl; 06_http is
#                                        in ../examples
#
# Needs nginx, openssl and valgrind. The caller sets a time limit.
set -eu
bin=$1
name=curl
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
PATH=$PATH:/usr/sbin # of nginx
nginx= silent=
# Replaces that of server.sh.
cleanup() {
    for process in $server $nginx $silent; do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}
claim() { echo "$name: $*"; }

# certificate NAME  A key and a certificate that is its own authority, for 127.0.0.1.
certificate() {
    openssl req -x509 -newkey ed25519 -nodes -keyout "$work/$1.key" -out "$work/$1.pem" \
        -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 2 2>"$work/log" ||
        fail "no certificate: $(cat "$work/log")"
}
# configuration NAME SERVERS  A file for nginx.
configuration() {
    mkdir "$work/$1"
    cat >"$work/$1.conf" <<END
daemon off; master_process off; pid $work/$1/pid; error_log $work/$1/log;
events { worker_connections 256; }
http {
    access_log off; root $work/www; client_header_timeout 300; send_timeout 300;
    client_body_temp_path $work/$1/t1; proxy_temp_path $work/$1/t2; fastcgi_temp_path $work/$1/t3;
    uwsgi_temp_path $work/$1/t4; scgi_temp_path $work/$1/t5;
$2
}
END
}
# Starts nginx on ports that are free.
serve() {
    for attempt in 1 2 3 4 5 6 7 8; do
        base=$(((($$ + attempt) * 7919) % 25000 + 7000))
        rm -rf "$work/web" "$work/dying"
        configuration web "
    server {
        listen 127.0.0.1:$base; listen 127.0.0.1:$((base + 1)) ssl http2;
        ssl_certificate $work/good.pem; ssl_certificate_key $work/good.key;
        location /slow/ { limit_rate 1m; alias $work/www/; }
    }
    server {
        listen 127.0.0.1:$((base + 2)) ssl http2;
        ssl_certificate $work/other.pem; ssl_certificate_key $work/other.key;
    }"
        configuration dying "
    server { listen 127.0.0.1:$((base + 3)); limit_rate 100k; }"
        nginx -e "$work/web/log" -c "$work/web.conf" 2>"$work/log" &
        nginx=$!
        until curl --silent --output "$work/got" "http://127.0.0.1:$base/data"; do
            kill -0 "$nginx" 2>/dev/null || continue 2
            sleep 0.1
        done
        cmp -s "$work/got" "$work/www/data" && return 0
    done
    fail "nginx did not start: $(cat "$work/log" "$work/web/log")"
}

mkdir "$work/www"
yes 0123456789abcdef | head -c 262144 >"$work/www/data"
head -c 10000 "$work/www/data" >"$work/www/part"
certificate good
certificate other
serve
start "$bin/../examples/06_http" 0
CURL_EXAMPLE=http://127.0.0.1:$port
CURL_HTTP=http://127.0.0.1:$base CURL_HTTPS=https://127.0.0.1:$((base + 1))
CURL_UNTRUSTED=https://127.0.0.1:$((base + 2)) CURL_DYING=http://127.0.0.1:$((base + 3))
CURL_AUTHORITY=$work/good.pem CURL_DYING_FILE=$work/dying.conf
export CURL_EXAMPLE CURL_HTTP CURL_HTTPS CURL_UNTRUSTED CURL_DYING CURL_AUTHORITY CURL_DYING_FILE

# A server that is stopped answers nothing: the kernel accepts its connections.
: >"$work/silent"
"$bin/../examples/06_http" 0 >"$work/silent" &
silent=$!
until grep -q '^port' "$work/silent"; do sleep 0.1; done
kill -STOP "$silent"
timeout 20 "$bin/plain/curl" 1 - "$CURL_EXAMPLE/" "$CURL_EXAMPLE/nothing" \
    "http://127.0.0.1:$(value port "$work/silent")/" >"$work/out" || fail "curl: exit status $?"
sed -n '/^\/\/ http:.*does not answer/,/^[^\/]/s|^// ||p' "$here/../../examples/adapters/curl.c" |
    sed 1d >"$work/want"
diff "$work/want" "$work/out" || fail 'curl: not the expected output'
claim 'the program prints the output that it promises'
timeout 20 "$bin/plain/curl" 10 "$CURL_AUTHORITY" "$CURL_HTTPS/data" "$CURL_UNTRUSTED/data" \
    >"$work/out" || fail "curl: exit status $?"
[ "$(head -n 1 "$work/out")" = '200, 262144 bytes' ] &&
    grep -q '^SSL peer certificate' "$work/out" || fail "curl: HTTPS: $(cat "$work/out")"
claim 'the program fetches a page over HTTPS and refuses a certificate'

for form in plain asan tsan; do
    TEST_TIMEOUT_FACTOR=3 timeout 200 "$bin/$form/test_curl" || fail "the $form form failed"
done
TEST_TIMEOUT_FACTOR=5 timeout 250 valgrind -q --error-exitcode=9 --leak-check=full \
    --errors-for-leak-kinds=definite,possible --log-file="$work/valgrind.%p" \
    "$bin/plain/test_curl" || {
    grep -hv '^--' "$work"/valgrind.* >&2 # its own warnings, of system calls that it lacks
    fail 'valgrind found errors'
}
claim 'valgrind finds no error and no leak'
stop
