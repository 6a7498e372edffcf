#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/tls_echo.c, and so examples/adapters/volt_openssl.h, against the openssl command
# and curl: both sides of a handshake, refusals, ends, and clients that misbehave.
#
#   tests/tools/programs/tls_echo.sh DIRECTORY     with the program
#
# Prints its checks. The kernel chooses the ports. The caller sets a time limit.
set -eu
bin=$1
name=tls_echo
here=$(dirname "$0")
. "$here/../../../bench/tools/server.sh"
LC_ALL=C
export LC_ALL
# Replaces that of server.sh. The arguments of the server and of most clients contain $work.
cleanup() {
    for process in $(pgrep -f "$work"); do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}

# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    echo "$name: $1"
}
# has CLAIM FILE PATTERN
has() {
    grep -q "$3" "$2" || { tail "$2" >&2 && fail "$1: no '$3'"; }
    echo "$name: $1"
}
# until_has FILE PATTERN  Waits until the file contains a line that matches.
until_has() {
    tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || { tail "$1" >&2 && fail "no '$2' came"; }
        sleep 0.1
    done
}

# certificate NAME HOST  A key and a certificate that is its own authority.
certificate() {
    openssl req -x509 -newkey ed25519 -nodes -keyout "$work/$1.key" -out "$work/$1.pem" \
        -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -days 2 2>"$work/$1.log" ||
        fail "no certificate: $(cat "$work/$1.log")"
}
# serve PROTOCOLS COMMAND...  Starts the server by a command, such as valgrind.
serve() {
    protocols=$1
    shift
    : >"$work/server"
    "$@" "$bin/tls_echo" serve 127.0.0.1:0 "$work/good.pem" "$work/good.key" "$protocols" \
        >"$work/server" 2>"$work/errors" &
    server=$!
    until_has "$work/server" '^port'
    port=$(value port "$work/server")
}
client() { timeout 30 "$bin/tls_echo" client "127.0.0.1:$port" "$@"; }
# s_client OPTION...  Its input is descriptor 3, its output $work/s_client, its process $peer.
s_client() {
    rm -f "$work/fifo"
    mkfifo "$work/fifo"
    timeout 30 openssl s_client -connect "127.0.0.1:$port" -servername localhost \
        -verify_hostname localhost -CAfile "$work/good.pem" -verify_return_error "$@" \
        <"$work/fifo" >"$work/s_client" 2>&1 &
    peer=$!
    exec 3>"$work/fifo"
}

# ---- the server, against the openssl command and curl

ends_with_s_client() {
    for version in -tls1_2 -tls1_3; do
        s_client "$version" -alpn other,echo
        echo 'some words' >&3
        until_has "$work/s_client" '^some words'
        exec 3>&-
        wait "$peer" || fail "s_client $version failed"
        has "s_client $version trusts the server" "$work/s_client" 'Verify return code: 0 (ok)'
        has "s_client $version agrees on a protocol" "$work/s_client" '^ALPN protocol: echo'
    done
    ! grep -q . "$work/errors" || fail "the server has seen errors: $(cat "$work/errors")"
    echo "$name: the server sees clean ends only"
}
# The line K makes s_client change its key, and ask the server to do so. The answer is output that
# the server makes in a read.
a_key_update() {
    s_client -tls1_3 -alpn echo -msg
    echo 'some words' >&3
    until_has "$work/s_client" '^some words'
    echo K >&3
    until_has "$work/s_client" '^KEYUPDATE'
    echo 'other words' >&3
    until_has "$work/s_client" '^other words'
    until_has "$work/s_client" '^<<< .*KeyUpdate'
    exec 3>&-
    wait "$peer" || fail 's_client with a key update failed'
    echo "$name: a key update is answered"
}
# refused CLAIM OPTION...  An s_client that fails before it can send.
refused() {
    claim=$1
    shift
    ! echo 'some words' | timeout 30 openssl s_client -connect "127.0.0.1:$port" "$@" \
        >"$work/s_client" 2>&1 || fail "$claim: the handshake has succeeded"
    ! grep -q '^some words' "$work/s_client" || fail "$claim: there was an echo"
    echo "$name: $claim"
}
refusals_by_the_server() {
    refused 'a client with another protocol is refused' -alpn other
    until_has "$work/errors" 'no application protocol\|no protocol'
    refused 'a client with TLS 1.1 is refused' -tls1_1 -cipher 'ALL:@SECLEVEL=0' -alpn echo
    until_has "$work/errors" 'unsupported protocol'
    echo 'not TLS at all, but a line of text' | timeout 10 nc -N 127.0.0.1 "$port" >"$work/nc" || :
    until_has "$work/errors" 'wrong version number'
    : | timeout 10 openssl s_client -connect "127.0.0.1:$port" >"$work/s_client" 2>&1 || :
    until_has "$work/errors" 'no protocol was agreed on'
    echo "$name: a client without a protocol is refused"
    echo 'some words' | client localhost "$work/good.pem" >"$work/echo" || fail 'the next client'
    same 'the server goes on after refusals' 'some words' "$(cat "$work/echo")"
}
# A stop ends the answer to curl cleanly: curl fails if there is no close_notify.
curl_is_served() {
    curl --silent --show-error --http0.9 --max-time 30 --no-buffer --cacert "$work/good.pem" \
        --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/some/path" \
        >"$work/curl" 2>"$work/curl.errors" &
    peer=$!
    until_has "$work/curl" '^GET /some/path HTTP/1.1'
    stop
    wait "$peer" || fail "curl: $(cat "$work/curl.errors")"
    echo "$name: curl reads its own request, and a clean end at a stop of the server"
}

# ---- the client

# start_s_server OPTION...  It sends each line back, reversed.
start_s_server() {
    : >"$work/server"
    openssl s_server -accept 127.0.0.1:0 -rev -cert "$work/good.pem" -key "$work/good.key" "$@" \
        >"$work/server" 2>&1 &
    server=$!
    until_has "$work/server" '^ACCEPT'
    port=$(sed -n 's/^ACCEPT.*://p' "$work/server")
}
client_with_s_server() {
    for version in -tls1_2 -tls1_3; do
        start_s_server "$version" -alpn echo
        rm -f "$work/fifo"
        mkfifo "$work/fifo"
        client localhost "$work/good.pem" <"$work/fifo" >"$work/echo" 2>"$work/client.errors" &
        peer=$!
        exec 3>"$work/fifo"
        echo 'some words' >&3
        until_has "$work/echo" '^sdrow emos'
        echo "$name: the client talks to s_server $version"
        kill -KILL "$server"
        ended=0
        wait "$peer" || ended=$?
        exec 3>&-
        wait "$server" 2>/dev/null || :
        server=
        same 'the client fails if the server ends without a close_notify' 1 "$ended"
        has 'and names that' "$work/client.errors" 'without a close_notify'
    done
    start_s_server -alpn other
    ! echo x | client localhost "$work/good.pem" >"$work/echo" 2>&1 || fail 'another protocol'
    has 'a server with another protocol is refused' "$work/echo" 'application protocol'
    kill "$server"
    wait "$server" 2>/dev/null || :
    start_s_server
    ! echo x | client localhost "$work/good.pem" >"$work/echo" 2>&1 || fail 'no protocol'
    has 'a server without a protocol is refused' "$work/echo" 'no protocol was agreed on'
    kill "$server"
    wait "$server" 2>/dev/null || :
    server=
}
refusals_by_the_client() {
    ! client wrong.test "$work/good.pem" </dev/null >"$work/echo" 2>&1 || fail 'wrong name'
    has 'a wrong host name is refused' "$work/echo" 'hostname mismatch'
    until_has "$work/errors" 'alert'
    ! client 127.0.0.1 "$work/good.pem" </dev/null >"$work/echo" 2>&1 || fail 'wrong address'
    has 'an address that is not in the certificate is refused' "$work/echo" 'IP address mismatch'
    ! client localhost "$work/other.pem" </dev/null >"$work/echo" 2>&1 || fail 'unknown CA'
    has 'an unknown authority is refused' "$work/echo" 'self.signed certificate'
    ! client '' "$work/good.pem" </dev/null >"$work/echo" 2>&1 || fail 'empty name'
    has 'an empty name is refused' "$work/echo" EINVAL
}

# ---- load

# While one client sends and does not read, another one sends 64 MiB and gets them back.
a_stuck_client_and_others() {
    mkfifo "$work/unread"
    yes 'a client that reads nothing' |
        timeout 40 openssl s_client -quiet -connect "127.0.0.1:$port" -CAfile "$work/good.pem" \
            -alpn echo >"$work/unread" 2>/dev/null &
    stuck=$!
    exec 4<"$work/unread"
    head -n 1 <&4 >"$work/first" # the echo has begun
    head -c 67108864 /dev/urandom >"$work/big"
    want=$(sha256sum <"$work/big")
    same '64 MiB come back unchanged while another client reads nothing' "$want" \
        "$(client localhost "$work/good.pem" <"$work/big" | sha256sum)"
    # The server cuts the connection of a client that does not read; stop waits for that.
    until_has "$work/errors" 'TIMEDOUT'
    exec 4<&-
    kill "$stuck" 2>/dev/null || :
    wait "$stuck" 2>/dev/null || :
    echo "$name: a client that does not read is cut"
}
a_silent_client() {
    timeout 30 nc 127.0.0.1 "$port" </dev/null >"$work/nothing" &
    silent=$!
}
a_client_that_is_killed() {
    s_client -alpn echo
    echo 'some words' >&3
    until_has "$work/s_client" '^some words'
    kill -KILL "$(pgrep -P "$peer")" # the child of timeout
    until_has "$work/errors" 'without a close_notify'
    exec 3>&-
    wait "$peer" 2>/dev/null || :
    echo "$name: a client that ends without a close_notify is an error of its connection"
}
leaves_nothing() {
    serve echo valgrind --quiet --leak-check=full --error-exitcode=9 --track-fds=yes \
        --log-file="$work/valgrind.%p"
    echo 'some words' | client localhost "$work/good.pem" >"$work/echo"
    same 'there is an echo under valgrind' 'some words' "$(cat "$work/echo")"
    ! client wrong.test "$work/good.pem" </dev/null >"$work/echo" 2>&1 || fail 'wrong name'
    stop
    cat "$work"/valgrind.* >"$work/fds"
    grep -q 'FILE DESCRIPTORS' "$work/fds" || fail 'valgrind has no report'
    awk '/Open [^ ]* *.*descriptor|Open .*socket/ { n++ } /<inherited from parent>/ { n-- }
        END { exit n != 0 }' "$work/fds" || fail "descriptors are left: $(cat "$work/fds")"
    echo "$name: the server leaves no memory and no descriptor"
}

certificate good localhost
certificate other localhost
serve echo
a_silent_client
ends_with_s_client
a_key_update
refusals_by_the_server
refusals_by_the_client
a_client_that_is_killed
a_stuck_client_and_others
wait "$silent" || fail 'a silent client was not cut'
echo "$name: a client that is silent in the handshake is cut"
stop
serve echo,http/1.1
curl_is_served
client_with_s_server
leaves_nothing
