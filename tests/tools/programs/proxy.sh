#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs a proxy, which is examples/08_proxy.c or examples/programs/proxy.cpp, between real clients
# and servers: nginx and curl, nc, socat. Prints its CPU time beside that of socat and haproxy.
#
#   tests/tools/programs/proxy.sh DIRECTORY [PROGRAM]     PROGRAM: default proxy
#
# Prints its checks. The kernel chooses most ports. The caller sets a time limit.
set -eu
bin=$1
name=${2:-proxy}
here=$(dirname "$0")
. "$here/../../../bench/tools/server.sh"
others= # processes to be ended at the exit
# Replaces that of server.sh.
cleanup() {
    for process in $server $others; do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}

claim() { echo "$name: $*"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    claim "$1"
}
checksum() { openssl dgst -sha256 -r; }
# until_has FILE PATTERN
until_has() {
    tries=0
    until grep -q "$2" "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || { tail "$1" >&2 && fail "no '$2' came"; }
        sleep 0.1
    done
}
# until_true COMMAND...
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || fail "never true: $*"
        sleep 0.1
    done
}
# has_sockets COLUMN STATES N  There are at least N sockets with $port at this end, in these states:
# COLUMN 2, the own end; 3, that of the peer; states: 01, established, 08, the peer has ended.
has_sockets() {
    awk -v column="$1" -v states="$2" -v n="$3" -v port="$(printf ':%04X$' "$port")" \
        '$column ~ port && index(states, $4) { n-- } END { exit n > 0 }' /proc/net/tcp
}
# listens PROCESS  Sets $port to that on which it listens for TCP. Fails if there is none.
listens() {
    port=$(readlink "/proc/$1"/fd/* 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]/\1/p' |
        awk 'FILENAME != "/proc/net/tcp" { ours[$1] = 1; next }
            $4 == "0A" && $10 in ours { sub(/.*:/, "", $2); print $2; exit }' - /proc/net/tcp)
    [ -n "$port" ] && port=$((0x$port))
}
# Waits until it listens. port_of fails if the process ends before.
listens_or_ends() { listens "$1" || ! kill -0 "$1" 2>/dev/null; }
port_of() {
    until_true listens_or_ends "$1"
    [ -n "$port" ] || fail 'a server did not start'
}
# proxy TARGET [IDLE_SECONDS]  Sets $port.
proxy() {
    : >"$work/log"
    "$bin/$name" 127.0.0.1:0 "127.0.0.1:$1" ${2:-} 2>"$work/log" &
    server=$!
    port_of "$server"
}
# target COMMAND...  A socat with these addresses; sets $target to its port.
target() {
    socat "$@" 2>"$work/socat" &
    socat=$!
    others="$others $socat"
    port_of "$socat"
    target=$port
}
# statistics LINE  Asks for the statistics until the last ones are LINE.
statistics() {
    tries=0
    until kill -USR1 "$server" && [ "$(tail -n 1 "$work/log")" = "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || fail "the statistics are: $(tail -n 1 "$work/log"); wanted: $1"
        sleep 0.1
    done
}
# cpu PROCESS  Its CPU time in ms, with that of its ended children.
cpu() {
    awk -v hz="$(getconf CLK_TCK)" \
        '{ sub(/.*\) /, ""); print int(($12 + $13 + $14 + $15) * 1000 / hz) }' "/proc/$1/stat"
}

# A file of 1 GiB, of which 1 MiB in each 16 MiB is random, and nginx, which serves it. $web is the
# port. The port may be in use, so that several are tried.
serve_file() {
    mkdir "$work/www"
    truncate -s 1G "$work/www/file"
    i=0
    while [ "$i" -lt 64 ]; do
        dd if=/dev/urandom of="$work/www/file" bs=64K count=16 seek=$((i * 256 + 120)) \
            conv=notrunc status=none
        i=$((i + 1))
    done
    sum=$(checksum <"$work/www/file")
    part=$(head -c 33554432 "$work/www/file" | checksum)
    tries=0
    nginx=
    while [ -z "$nginx" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || fail "nginx did not start: $(cat "$work/nginx.errors")"
        web=$(awk -v seed="$$$tries" 'BEGIN { srand(seed); print 20000 + int(rand() * 12000) }')
        cat >"$work/nginx.conf" <<END
daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 64; }
http {
    access_log off; sendfile on; root $work/www;
    client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3;
    uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
    server { listen 127.0.0.1:$web; }
}
END
        nginx -e "$work/nginx.log" -c "$work/nginx.conf" 2>"$work/nginx.errors" &
        nginx=$!
        until_true listens_or_ends "$nginx"
        [ -n "$port" ] || nginx=
    done
    others="$others $nginx"
}
get() { curl --silent --show-error --max-time 60 "http://127.0.0.1:$port/file" "$@"; }

a_gibibyte() {
    proxy "$web"
    get -o - -w '%{stderr}%{size_request} %{size_header} %{size_download}' 2>"$work/sizes" |
        checksum >"$work/sum"
    same '1 GiB from nginx to curl has the checksum of the file' "$sum" "$(cat "$work/sum")"
    statistics "0 connections, 1 in all, $(awk '{ print $1 + $2 + $3 }' "$work/sizes") bytes"
    claim 'SIGUSR1 prints the number of bytes of both directions'
    ours=$(cpu "$server")
    stop
}

# In a trace, each call names the file of its descriptor: a read or write may be on an eventfd, on
# the signalfd or on the log.
payload_by_splice() {
    : >"$work/log"
    strace -f -yy -e trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,sendfile,splice \
        -o "$work/trace" "$bin/$name" 127.0.0.1:0 "127.0.0.1:$web" 2>"$work/log" &
    strace=$!
    until_true pgrep -P "$strace" -f "^$bin/$name" >"$work/pid"
    server=$(cat "$work/pid")
    port_of "$server"
    get -r 0-33554431 -w '%{stderr}%{size_request} %{size_header} %{size_download}' \
        2>"$work/sizes" | checksum >"$work/sum"
    same 'a part of the file has its checksum under strace' "$part" "$(cat "$work/sum")"
    kill -TERM "$server"
    wait "$strace" || fail "strace ended with status $?"
    server=
    same 'no payload is moved by read, recv, write or send' '' \
        "$(grep -v splice "$work/trace" | grep -E '<(TCP|socket|pipe)' || :)"
    # Each byte goes into a pipe and out of it, so half of the sum is payload.
    same 'splice moves every byte' "$(awk '{ print 2 * ($1 + $2 + $3) }' "$work/sizes")" \
        "$(awk '/splice.* = [0-9]+$/ { n += $NF } END { print n }' "$work/trace")"
}

half_closes() {
    target TCP4-LISTEN:0,bind=127.0.0.1 "SYSTEM:sha256sum"
    proxy "$target"
    head -c 5000000 "$work/www/file" >"$work/sent"
    same 'a client that has ended its side gets its answer' "$(sha256sum <"$work/sent")" \
        "$(timeout 20 nc -N 127.0.0.1 "$port" <"$work/sent")"
    stop
    echo 'the end' | timeout 60 nc -N -l 127.0.0.1 0 >"$work/got" &
    ends_first=$!
    others="$others $ends_first"
    until_true pgrep -P "$ends_first" >"$work/pid"
    port_of "$(cat "$work/pid")"
    proxy "$port"
    mkfifo "$work/input"
    timeout 60 nc -N 127.0.0.1 "$port" <"$work/input" >"$work/answer" &
    client=$!
    exec 4>"$work/input"
    until_true has_sockets 3 08 1
    echo 'after the end' >&4
    exec 4>&-
    wait "$client" || fail 'the client has failed'
    wait "$ends_first" || fail 'the server has failed'
    same 'the end of a server is passed on' 'the end' "$(cat "$work/answer")"
    same 'and the server gets what the client sends after that' 'after the end' "$(cat "$work/got")"
    stop
}

# The connection of a server that is killed ends by a reset, since SO_LINGER is 0.
resets() {
    echo 'echo the beginning; exec cat >/dev/null' >"$work/begins"
    target TCP4-LISTEN:0,bind=127.0.0.1,linger=0 "EXEC:sh $work/begins"
    proxy "$target"
    get --http0.9 --no-buffer -o "$work/answer" 2>"$work/curl" &
    client=$!
    until_has "$work/answer" 'the beginning'
    kill -KILL "$socat"
    ! wait "$client" || fail 'a cut answer looks like a complete one'
    same 'a connection that is cut is reset on the other side' 'reset by peer' \
        "$(grep -o 'reset by peer' "$work/curl")"
    wait "$socat" 2>/dev/null || :
    stop
}

# hold N  Opens N connections that wait for their input, from descriptor 5.
hold() {
    rm -f "$work/hold"
    mkfifo "$work/hold"
    held=
    i=0
    while [ "$i" -lt "$1" ]; do
        timeout 60 nc -N 127.0.0.1 "$port" <"$work/hold" >"$work/held" 2>&1 &
        held="$held $!"
        i=$((i + 1))
    done
    others="$others $held"
    exec 5>"$work/hold"
}
a_limit_of_connections() {
    target TCP4-LISTEN:0,bind=127.0.0.1,fork SYSTEM:cat
    : >"$work/log"
    # 7 descriptors for each of 10 connections
    (ulimit -n 70 && exec "$bin/$name" 127.0.0.1:0 "127.0.0.1:$target" 2>"$work/log") &
    server=$!
    port_of "$server"
    hold 10
    statistics '10 connections, 10 in all, 0 bytes'
    echo words | timeout 20 nc -N 127.0.0.1 "$port" >"$work/echo" &
    last=$!
    until_true has_sockets 2 '01 08' 11
    statistics '10 connections, 10 in all, 0 bytes'
    same 'at its limit the proxy lets a client wait' '' "$(cat "$work/echo")"
    kill "${held##* }"
    wait "$last" || fail 'the client that had to wait'
    same 'and serves it when another one has ended' 'words' "$(cat "$work/echo")"
    statistics '9 connections, 11 in all, 12 bytes'
    exec 5>&-
    stop
}

idle_connections() {
    target TCP4-LISTEN:0,bind=127.0.0.1,fork SYSTEM:cat
    proxy "$target" 2
    hold 1
    for i in 1 2 3 4 5 6 7; do
        echo "$i"
        sleep 0.5 # traffic for longer than the limit, at a pace that keeps below it
    done | timeout 20 nc -N 127.0.0.1 "$port" >"$work/echo" || fail 'a client with traffic was cut'
    same 'traffic keeps a connection for longer than its idle limit' '1 2 3 4 5 6 7 ' \
        "$(tr '\n' ' ' <"$work/echo")"
    statistics '0 connections, 2 in all, 28 bytes'
    claim 'a connection without traffic is cut at its idle limit'
    exec 5>&-
    stop
}

is_refused() { ! nc -z 127.0.0.1 "$port" 2>/dev/null; }
drain() {
    proxy "$web"
    get -r 0-33554431 --limit-rate 16M >"$work/part" &
    curl=$!
    until_true [ -s "$work/part" ]
    kill -TERM "$server"
    until_true is_refused
    claim 'SIGTERM closes the listener'
    wait "$curl" || fail 'the transfer was cut'
    same 'and a transfer under way ends with its checksum' "$part" "$(checksum <"$work/part")"
    wait "$server" || fail "the proxy ended with status $?"
    proxy "$web"
    hold 1
    statistics '1 connections, 1 in all, 0 bytes'
    kill -TERM "$server"
    until_true is_refused
    began=$(date +%s)
    stop
    [ "$(($(date +%s) - began))" -lt 20 ] || fail 'the proxy has waited for its connections'
    claim 'a second signal cuts the connections'
    exec 5>&-
}

has_no_child() { ! pgrep -P "$1" >"$work/pid"; }
# Prints figures; nothing is judged.
cpu_time() {
    target TCP4-LISTEN:0,bind=127.0.0.1,fork "TCP4:127.0.0.1:$web"
    get -o "$work/none"
    until_true has_no_child "$socat"
    theirs=$(cpu "$socat")
    tries=0
    haproxy=
    while [ -z "$haproxy" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || fail "haproxy did not start: $(cat "$work/haproxy.log")"
        port=$(awk -v seed="$tries$$" 'BEGIN { srand(seed); print 20000 + int(rand() * 12000) }')
        cat >"$work/haproxy.conf" <<END
global
    maxconn 64
defaults
    mode tcp
    option splice-auto
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen proxy
    bind 127.0.0.1:$port
    server nginx 127.0.0.1:$web
END
        haproxy -db -q -f "$work/haproxy.conf" 2>"$work/haproxy.log" &
        haproxy=$!
        until_true listens_or_ends "$haproxy"
        [ -n "$port" ] || haproxy=
    done
    others="$others $haproxy"
    before=$(cpu "$haproxy")
    get -o "$work/none"
    awk -v ours="$ours" -v socat="$theirs" -v haproxy="$(($(cpu "$haproxy") - before))" 'BEGIN {
        printf "CPU time per GiB: %d ms; socat %d ms, %.2f of it; haproxy %d ms, %.2f of it\n",
            ours, socat, socat ? ours / socat : 0, haproxy, haproxy ? ours / haproxy : 0
    }' | sed "s/^/$name: /"
}

serve_file
a_gibibyte
payload_by_splice
half_closes
resets
a_limit_of_connections
idle_connections
drain
cpu_time
