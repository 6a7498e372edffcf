# SPDX-License-Identifier: MIT OR 0BSD
# Sourced by openssl.sh and mbedtls.sh, which set:
#   bin        the folder of the programs, the first argument
#   name       the library
#   versions   the options of s_client for its versions of TLS
#   says_...   its texts, as patterns of grep
# The peers are the openssl command, curl and nc. Prints a line for each claim. The kernel chooses
# the ports. The caller sets a time limit.
. "$here/../../bench/tools/server.sh"
LC_ALL=C
export LC_ALL
others=
# Replaces that of server.sh.
cleanup() {
    # shellcheck disable=SC2086
    [ -z "$others" ] || kill $others 2>/dev/null || :
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || :
    rm -rf "$work"
}

# ---- words

# says CLAIM
says() { echo "$name: $1"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    says "$1"
}
# has CLAIM FILE PATTERN
has() {
    grep -q "$3" "$2" || { tail "$2" >&2 && fail "$1: no '$3'"; }
    says "$1"
}
# until_has FILE PATTERN [LINE]  Waits until a line matches, from line LINE on.
until_has() {
    tries=0
    until tail -n "+${3:-1}" "$1" | grep -q "$2"; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { tail "$1" >&2 && fail "no '$2' came"; }
        sleep 0.1
    done
}
# until_error PATTERN  Waits for an error of the server, behind the last one that was waited for.
until_error() {
    until_has "$work/errors" "$1" "$next_error"
    next_error=$(($(wc -l <"$work/errors") + 1))
}

# ---- certificates

# certificate NAME HOST  A key and a certificate that is its own authority.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" \
        -out "$work/$1.pem" -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -days 2 \
        2>"$work/$1.log" || fail "no certificate: $(cat "$work/$1.log")"
}
# `openssl req` makes no certificate of the past.
expired_certificate() {
    cat >"$work/ca.conf" <<END
[ca]
default_ca = one
[one]
database = $work/ca.index
serial = $work/ca.serial
new_certs_dir = $work
default_md = sha256
policy = any
x509_extensions = host
[any]
commonName = supplied
[host]
subjectAltName = DNS:localhost
basicConstraints = CA:TRUE
END
    : >"$work/ca.index"
    echo 01 >"$work/ca.serial"
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -keyout "$work/expired.key" -out "$work/expired.csr" -subj /CN=localhost \
        2>"$work/expired.log" &&
        openssl ca -batch -config "$work/ca.conf" -selfsign -keyfile "$work/expired.key" \
            -in "$work/expired.csr" -out "$work/expired.pem" -notext \
            -startdate 20200101000000Z -enddate 20200102000000Z 2>>"$work/expired.log" ||
        fail "no certificate: $(cat "$work/expired.log")"
}
certificates() {
    certificate good localhost
    certificate other localhost
    expired_certificate
}

# ---- the test program

# unit_tests FORM COMMAND...  All tests, by a command such as valgrind.
unit_tests() {
    form=$1
    shift
    TLS_FILES=$work "$@" "$bin/$form/test_$name" >"$work/tests" 2>&1 ||
        { cat "$work/tests" >&2 && fail "the tests of $form${2:+ by $1}"; }
    says "$form${1:+, $*}: $(tail -n 1 "$work/tests" | sed 's/.*: //')"
}

# ---- programs

# start_slowly COMMAND...  As start of server.sh, without its time limit. Errors: $work/errors.
start_slowly() {
    : >"$work/server"
    "$@" >"$work/server" 2>"$work/errors" &
    server=$!
    next_error=1
    until_has "$work/server" '^port'
    port=$(value port "$work/server")
}
# serve PROTOCOLS COMMAND...  Starts the echo server by a command, such as valgrind.
serve() {
    protocols=$1
    shift
    start_slowly "$@" "$bin/plain/$name" serve 0 "$work/good.pem" "$work/good.key" "$protocols"
}
client() { timeout 30 "$bin/plain/$name" client "127.0.0.1:$port" "$@"; }
# s_client OPTION...  Its input is descriptor 3, its output $work/s_client, its process $peer.
s_client() {
    rm -f "$work/fifo"
    mkfifo "$work/fifo"
    : >"$work/s_client" # none of what the last one has said
    timeout 30 openssl s_client -connect "127.0.0.1:$port" -servername localhost \
        -verify_hostname localhost -CAfile "$work/good.pem" -verify_return_error "$@" \
        <"$work/fifo" >"$work/s_client" 2>&1 &
    peer=$!
    others="$others $peer"
    exec 3>"$work/fifo"
}
# start_s_server OPTION...  It sends each line back, reversed.
start_s_server() {
    : >"$work/server"
    openssl s_server -accept 127.0.0.1:0 -rev -cert "$work/good.pem" -key "$work/good.key" "$@" \
        >"$work/server" 2>&1 &
    server=$!
    until_has "$work/server" '^ACCEPT'
    port=$(sed -n 's/^ACCEPT.*://p' "$work/server")
}
stop_s_server() {
    kill "$server"
    wait "$server" 2>/dev/null || :
    server=
}

# ---- the server, against the openssl command and curl

ends_with_s_client() {
    for version in $versions; do
        s_client "$version" -alpn unknown,echo
        echo 'some words' >&3
        until_has "$work/s_client" '^some words'
        exec 3>&-
        wait "$peer" || fail "s_client $version failed"
        has "s_client $version trusts the server" "$work/s_client" 'Verify return code: 0 (ok)'
        has "s_client $version agrees on a protocol" "$work/s_client" '^ALPN protocol: echo'
    done
    ! grep -q . "$work/errors" || fail "the server has seen errors: $(cat "$work/errors")"
    says 'the server sees clean ends only'
}
sessions_of_the_server() {
    for version in $versions; do
        for how in -sess_out -sess_in; do
            s_client "$version" -alpn echo "$how" "$work/session"
            echo 'some words' >&3
            until_has "$work/s_client" '^some words'
            exec 3>&-
            wait "$peer" || fail "s_client $how failed"
        done
        has "s_client $version resumes its session" "$work/s_client" '^Reused, TLSv1'
    done
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
    says 'a key update is answered'
}
# The line R makes s_client renegotiate.
a_renegotiation() {
    s_client -tls1_2 -alpn echo
    echo 'some words' >&3
    until_has "$work/s_client" '^some words'
    echo R >&3
    until_has "$work/s_client" 'no renegotiation'
    exec 3>&-
    ! wait "$peer" || fail 's_client has renegotiated'
    until_error "$says_alert"
    says 'a renegotiation is refused'
}
# refused CLAIM OPTION...  An s_client that fails before it can send.
refused() {
    claim=$1
    shift
    ! echo 'some words' | timeout 30 openssl s_client -connect "127.0.0.1:$port" "$@" \
        >"$work/s_client" 2>&1 || fail "$claim: the handshake has succeeded"
    ! grep -q '^some words' "$work/s_client" || fail "$claim: there was an echo"
    says "$claim"
}
refusals_by_the_server() {
    refused 'a client with another protocol is refused' -alpn unknown
    until_error "$says_no_common_protocol"
    refused 'a client with TLS 1.1 is refused' -tls1_1 -cipher 'ALL:@SECLEVEL=0' -alpn echo
    until_error "$says_old_version"
    echo 'not TLS at all, but a line of text' | timeout 10 nc -N 127.0.0.1 "$port" >"$work/nc" || :
    until_error "$says_garbage"
    says 'a client that sends garbage is refused'
    : | timeout 10 openssl s_client -connect "127.0.0.1:$port" >"$work/s_client" 2>&1 || :
    until_error 'no protocol was agreed on'
    says 'a client without a protocol is refused'
    echo 'some words' | client localhost "$work/good.pem" echo >"$work/echo" ||
        fail 'the next client'
    same 'the server goes on after refusals' 'some words' "$(cat "$work/echo")"
}
# A stop ends the answer to curl cleanly: curl fails if there is no close_notify.
curl_is_served() {
    : >"$work/curl"
    timeout 30 curl --silent --show-error --http0.9 --no-buffer --cacert "$work/good.pem" \
        --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/some/path" \
        >"$work/curl" 2>"$work/curl.errors" &
    peer=$!
    others="$others $peer"
    until_has "$work/curl" '^GET /some/path HTTP/1.1'
    stop
    wait "$peer" || fail "curl: $(cat "$work/curl.errors")"
    says 'curl reads its own request, and a clean end at a stop of the server'
}
a_client_that_is_killed() {
    s_client -alpn echo
    echo 'some words' >&3
    until_has "$work/s_client" '^some words'
    kill -KILL "$(pgrep -P "$peer")" # the child of timeout
    until_error 'without a close_notify'
    exec 3>&-
    wait "$peer" 2>/dev/null || :
    says 'a client that ends without a close_notify is an error of its connection'
}
a_silent_client() {
    timeout 40 nc 127.0.0.1 "$port" </dev/null >"$work/nothing" &
    silent=$!
    others="$others $silent"
}
# While one client sends and does not read, another one sends 32 MiB and gets them back.
a_stuck_client_and_others() {
    mkfifo "$work/unread"
    yes 'a client that reads nothing' |
        timeout 60 openssl s_client -quiet -connect "127.0.0.1:$port" -CAfile "$work/good.pem" \
            -alpn echo >"$work/unread" 2>/dev/null &
    stuck=$!
    others="$others $stuck"
    exec 4<"$work/unread"
    head -n 1 <&4 >"$work/first" # the echo has begun
    head -c 33554432 /dev/urandom >"$work/big"
    want=$(sha256sum <"$work/big")
    same '32 MiB come back unchanged while another client reads nothing' "$want" \
        "$(client localhost "$work/good.pem" echo <"$work/big" | sha256sum)"
    wait "$silent" || fail 'a silent client was not cut'
    tries=0
    until [ "$(grep -c TIMEDOUT "$work/errors")" -ge 2 ]; do # that of the silent one, too
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || fail 'a client that does not read was not cut'
        sleep 0.1
    done
    exec 4<&-
    kill "$stuck" 2>/dev/null || :
    wait "$stuck" 2>/dev/null || :
    says 'a client that does not read is cut'
    says 'a client that is silent in the handshake is cut'
}

# ---- the client

client_with_s_server() {
    for version in $versions; do
        start_s_server "$version" -alpn echo -tlsextdebug
        rm -f "$work/fifo"
        mkfifo "$work/fifo"
        : >"$work/echo"
        client localhost "$work/good.pem" echo <"$work/fifo" >"$work/echo" \
            2>"$work/client.errors" &
        peer=$!
        others="$others $peer"
        exec 3>"$work/fifo"
        echo 'some words' >&3
        until_has "$work/echo" '^sdrow emos'
        says "the client talks to s_server $version"
        has 'the server is told the name of the host' "$work/server" '63-61 6c 68 6f .*\.localhost$'
        kill -KILL "$server"
        ended=0
        wait "$peer" || ended=$?
        exec 3>&-
        wait "$server" 2>/dev/null || :
        server=
        same 'the client fails if the server ends without a close_notify' 1 "$ended"
        has 'and names that' "$work/client.errors" 'without a close_notify'
    done
}
sessions_of_the_client() {
    for version in $versions; do
        start_s_server "$version" -alpn echo
        rm -f "$work/client.session"
        for _ in first second; do
            echo 'some words' | client localhost "$work/good.pem" echo "$work/client.session" \
                >"$work/echo" 2>"$work/client.errors" || fail "$(cat "$work/client.errors")"
        done
        same "the client resumes its session with s_server $version" 'resumed: 1' \
            "$(cat "$work/client.errors")"
        same 'the file of a session is for its owner alone' 600 \
            "$(stat -c %a "$work/client.session")"
        stop_s_server
    done
}
# refuses CLAIM PATTERN ARGUMENT...  The client fails with a text.
refuses() {
    claim=$1 pattern=$2
    shift 2
    ! client "$@" </dev/null >"$work/echo" 2>&1 || fail "$claim: the client has succeeded"
    has "$claim" "$work/echo" "$pattern"
}
refusals_by_the_client() {
    refuses 'a wrong host name is refused' "$says_wrong_name" wrong.test "$work/good.pem" echo
    until_error "$says_alert"
    refuses 'an address that is not in the certificate is refused' "$says_wrong_address" \
        127.0.0.1 "$work/good.pem" echo
    refuses 'an unknown authority is refused' "$says_unknown" localhost "$work/other.pem" echo
    refuses 'an empty name is refused' EINVAL '' "$work/good.pem" echo
    refuses 'a file that is not there is named as the reason' "$says_no_file" \
        localhost "$work/none.pem" echo
}
refusals_of_s_server() {
    start_s_server -alpn unknown
    refuses 'a server with another protocol is refused' "$says_alert" \
        localhost "$work/good.pem" echo
    stop_s_server
    start_s_server
    refuses 'a server without a protocol is refused' 'no protocol was agreed on' \
        localhost "$work/good.pem" echo
    stop_s_server
}
# listen  Starts nc, which sends $work/hello to the first client, and sets $port.
listen() {
    : >"$work/nc.port"
    timeout 30 nc -v -N -l 127.0.0.1 0 <"$work/hello" >"$work/nc" 2>"$work/nc.port" &
    others="$others $!"
    until_has "$work/nc.port" '^Listening'
    port=$(sed -n 's/^Listening.* //p' "$work/nc.port")
}
servers_that_die_or_talk_nonsense() {
    printf '\026\003\003\000\172\002\000\000\166\003\003' >"$work/hello"
    listen
    refuses 'a server that dies in the handshake is an error' 'ended in the handshake' \
        localhost "$work/good.pem" echo
    echo 'HTTP/1.1 400 Bad Request' >"$work/hello"
    listen
    refuses 'a server that talks another language is an error' "$says_no_record" \
        localhost "$work/good.pem" echo
}

# ---- HTTPS

# fetch SCHEME PORT PATH OPTION...  curl, without its progress.
fetch() {
    url="$1://localhost:$2$3" where=localhost:$2:127.0.0.1
    shift 3
    timeout 30 curl --silent --show-error --cacert "$work/good.pem" --resolve "$where" "$url" "$@"
}
https() {
    start_slowly "$bin/plain/https_$name" 0 0 "$work/good.pem" "$work/good.key"
    until_has "$work/server" '^tls'
    secure=$(value tls "$work/server")
    for scheme in http https; do
        at=$port
        [ "$scheme" = http ] || at=$secure
        same "curl reads a page by $scheme" 'It works' "$(fetch "$scheme" "$at" /)"
        same "a request with a body by $scheme" 'a body' \
            "$(fetch "$scheme" "$at" /echo --data 'a body')"
        same "a page that is not there by $scheme" '404' \
            "$(fetch "$scheme" "$at" /none --output /dev/null --write-out '%{http_code}')"
        same "the absolute form by $scheme" 'It works' \
            "$(fetch "$scheme" "$at" / --request-target "$scheme://localhost:$at/")"
        same "HEAD by $scheme" '200' \
            "$(fetch "$scheme" "$at" / --head --output /dev/null --write-out '%{http_code}')"
        same "three requests on one connection by $scheme" '1
0
0' "$(fetch "$scheme" "$at" '/[1-3]' --output /dev/null --write-out '%{num_connects}\n')"
        head -c 3000 /dev/zero | tr '\0' x >"$work/body"
        same "a body of 3000 bytes comes back by $scheme" "$(sha256sum <"$work/body")" \
            "$(fetch "$scheme" "$at" /echo --data-binary "@$work/body" | sha256sum)"
    done
    same 'curl reads a page by TLS 1.2' 'It works' "$(fetch https "$secure" / --tls-max 1.2)"
    printf 'GET / HTTP/1.0\r\n\r\n' | timeout 30 openssl s_client -connect "127.0.0.1:$secure" \
        -CAfile "$work/good.pem" -quiet -ign_eof >"$work/s_client" 2>&1 || fail 's_client'
    has 's_client reads the last answer by https' "$work/s_client" '^It works'
    ! grep 'eof' "$work/s_client" || fail 'the end is not clean'
    says 'and behind it a clean end'
    ! fetch https "$secure" / --cacert "$work/other.pem" >"$work/curl" 2>&1 || fail 'another CA'
    has 'curl refuses a server that it does not trust' "$work/curl" 'certificate'
    ! fetch http "$secure" / >"$work/curl" 2>&1 || fail 'HTTP on the port of HTTPS'
    until_error "$says_http"
    says 'HTTP on the port of HTTPS is refused'
    same 'the server goes on' 'It works' "$(fetch https "$secure" /)"
    stop
}

leaves_nothing() {
    serve echo valgrind --quiet --leak-check=full --error-exitcode=9 --track-fds=yes \
        --log-file="$work/valgrind.%p"
    echo 'some words' | client localhost "$work/good.pem" echo >"$work/echo"
    same 'there is an echo under valgrind' 'some words' "$(cat "$work/echo")"
    refuses 'a server under valgrind is refused' "$says_wrong_name" \
        wrong.test "$work/good.pem" echo
    stop
    cat "$work"/valgrind.* >"$work/fds"
    grep -q 'FILE DESCRIPTORS' "$work/fds" || fail 'valgrind has no report'
    awk '/Open [^ ]* *.*descriptor|Open .*socket/ { n++ } /<inherited from parent>/ { n-- }
        END { exit n != 0 }' "$work/fds" || fail "descriptors are left: $(cat "$work/fds")"
    says 'the server leaves no memory and no descriptor'
}

# ---- all of it, in the order of the scripts

all_forms() {
    certificates
    TEST_TIMEOUT_FACTOR=10
    export TEST_TIMEOUT_FACTOR
    for form in plain asan tsan; do unit_tests "$form"; done
    TLS_SHORT=1 unit_tests plain valgrind --quiet --leak-check=full --error-exitcode=9
}
all_peers() {
    serve echo
    a_silent_client
    ends_with_s_client
    sessions_of_the_server
    a_renegotiation
    refusals_by_the_server
    refusals_by_the_client
    a_client_that_is_killed
    a_stuck_client_and_others
    stop
    serve echo,http/1.1
    curl_is_served
    client_with_s_server
    sessions_of_the_client
    refusals_of_s_server
    servers_that_die_or_talk_nonsense
    https
    leaves_nothing
}
