#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/projects/socks.c, and socks_threads.c from which it was made, between curl and nginx
# and between the clients and servers of socks.py. Prints the CPU time and the memory of both, and
# of microsocks.
#
#   tests/projects/socks.sh DIRECTORY     with the programs
#
# The caller sets a time limit.
set -eu
bin=$1
here=$(dirname "$0")
. "$here/../../bench/tools/server.sh"
others= # processes to be ended at the exit
cleanup() {
    for process in $server $others; do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}
ulimit -n "$(ulimit -Hn)"
name=socks
claim() { echo "$name: $*"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$name: $1: wanted '$2', got '$3'"
    claim "$1"
}
peer() { timeout 100 python3 "$here/socks.py" "$@" >"$work/peer" || fail "$name: socks.py $*"; }
claims() {
    peer "$@"
    sed "s/^/$name: /" "$work/peer"
}
# until_true COMMAND...
until_true() {
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || fail "never true: $*"
        sleep 0.1
    done
}
# cpu PROCESS  Its CPU time in ms.
cpu() {
    awk -v hz="$(getconf CLK_TCK)" \
        '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$1/stat"
}
resident() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$server/status"; }
has_sockets() { [ "$(readlink "/proc/$server/fd/"* | grep -c socket:)" -eq "$1" ]; }

# slow_start COMMAND...  As start, for a server that takes longer.
slow_start() {
    : >"$work/server"
    "$@" >"$work/server" &
    server=$!
    until_true grep -q port "$work/server"
    port=$(value port "$work/server")
}

# nginx with a file of 256 MiB, of which the first MiB is random, on 127.0.0.1 and ::1. Sets $web.
serve_file() {
    mkdir "$work/www"
    head -c 1048576 /dev/urandom >"$work/www/file"
    truncate -s 256M "$work/www/file"
    part=$(head -c 2097152 "$work/www/file" | sha256sum)
    tries=0
    until [ -n "${nginx:-}" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || fail "nginx did not start: $(cat "$work/nginx.log")"
        web=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
        cat >"$work/nginx.conf" <<END
daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 256; }
http {
    access_log off; sendfile on; root $work/www;
    client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3;
    uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
    server { listen 127.0.0.1:$web; listen [::1]:$web; }
}
END
        nginx -e "$work/nginx.log" -c "$work/nginx.conf" 2>"$work/nginx.errors" &
        nginx=$!
        until curl --silent --fail -r 0-0 -o "$work/first" "http://127.0.0.1:$web/file"; do
            kill -0 "$nginx" 2>/dev/null || { nginx= && break; }
            sleep 0.1
        done
    done
    others="$others $nginx"
}
# get URL OPTION...  The first 2 MiB of the file, through the proxy.
get() { curl --silent --show-error --max-time 60 -r 0-2097151 "$@"; }
# by_curl  What both programs can.
by_curl() {
    for url in "http://127.0.0.1:$web/file" "http://[::1]:$web/file" \
        "http://localhost:$web/file"; do
        for kind in socks5 socks5-hostname; do
            same "curl --$kind gets $(echo "${url%:*}" | sed 's|.*//||') with its checksum" \
                "$part" "$(get "--$kind" "127.0.0.1:$port" "$url" | sha256sum)"
        done
    done
    rc=0
    curl --silent --max-time 60 --socks5-hostname "127.0.0.1:$port" -o "$work/none" \
        http://no-such-name.invalid/ || rc=$?
    same 'a name without an address is an error of the proxy (curl: 97)' 97 "$rc"
}
by_curl_with_login() {
    same 'curl --proxy-user logs in' "$part" \
        "$(get --socks5 "127.0.0.1:$port" --proxy-user me:secret \
            "http://127.0.0.1:$web/file" | sha256sum)"
    for login in me:wrong you:secret; do
        rc=0
        curl --silent --max-time 60 --socks5 "127.0.0.1:$port" --proxy-user "$login" \
            -o "$work/none" "http://127.0.0.1:$web/file" || rc=$?
        same "and $login is refused" 97 "$rc"
    done
}
many_at_once() {
    clients=
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        get --socks5-hostname "127.0.0.1:$port" "http://localhost:$web/file" >"$work/part.$i" &
        clients="$clients $!"
    done
    for i in 2 3 4 5 6 7 8 9; do # nginx does not listen there
        rc=0
        get --socks5 "127.0.0.1:$port" -o "$work/none" "http://127.0.0.$i:$web/file" \
            2>"$work/errors" || rc=$?
        [ "$rc" -eq 97 ] || fail "127.0.0.$i: curl ended with $rc"
    done
    for client in $clients; do wait "$client" || fail 'a transfer among others'; done
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(sha256sum <"$work/part.$i")" = "$part" ] || fail "transfer $i has another checksum"
    done
    claim '20 transfers at once have their checksum, beside targets that refuse'
    until_true has_sockets 1
    claim 'and no socket but the listener is left open'
}

# measure NAME COMMAND...  Sets $port by itself if the command prints it. Nothing is judged.
measure() {
    name=$1
    shift
    idle=$(resident)
    mkfifo "$work/go"
    timeout 100 python3 "$here/socks.py" many "$port" 1000 >"$work/many" <"$work/go" &
    many=$!
    others="$others $many"
    exec 5>"$work/go"
    until_true grep -q ready "$work/many"
    held=$(resident)
    echo >&5
    exec 5>&-
    rm "$work/go"
    wait "$many" || fail "$name: a connection of 1000 was lost"
    claim '1000 connections at once carry their bytes'
    before=$(cpu "$server")
    peer short "$port" 400
    short=$(cpu "$server")
    curl --silent --show-error --max-time 200 -r 0-268435455 --socks5 "127.0.0.1:$port" \
        -o "$work/none" "http://127.0.0.1:$web/file"
    bulk=$(cpu "$server")
    echo "$name: $(awk -v idle="$idle" -v held="$held" -v short=$((short - before)) \
        -v bulk=$((bulk - short)) 'BEGIN {
            printf "%d KiB, and %.1f KiB for each of 1000 connections; ", idle, (held - idle) / 1000
            printf "CPU time: %.2f ms for a connection, %d ms for 1 GiB", short / 400, 4 * bulk
        }')"
}
# ends  Kills a server that has no other end.
ends() {
    kill "$server"
    wait "$server" 2>/dev/null || :
    server=
}

serve_file
start "$bin/plain/socks" 127.0.0.1:0
by_curl
claims open "$port"
many_at_once
stop
for form in asan tsan; do
    name="socks, $form"
    slow_start "$bin/$form/socks" 127.0.0.1:0
    peer open "$port"
    many_at_once
    stop
    slow_start "$bin/$form/socks" -u me -P secret -t 1 127.0.0.1:0
    peer login "$port"
    stop
    slow_start "$bin/$form/socks" -t 1 -w 1 127.0.0.1:0
    peer stalled "$port" 1
    peer silent "$port" 1
    stop
    claim 'what holds for the plain program holds, without a report'
done
name=socks
start "$bin/plain/socks" -u me -P secret 127.0.0.1:0
by_curl_with_login
claims login "$port"
stop
start "$bin/plain/socks" -w 2 127.0.0.1:0
claims stalled "$port" 2
stop
start "$bin/plain/socks" -t 2 127.0.0.1:0
claims silent "$port" 2
stop
start "$bin/plain/socks" -c 10 127.0.0.1:0
claims limit "$port" 10
stop
start "$bin/plain/socks" 127.0.0.1:0
claims drain "$port" "$server"
stop
slow_start valgrind -q --error-exitcode=9 --leak-check=full --track-fds=yes \
    --log-file="$work/valgrind" "$bin/plain/socks" 127.0.0.1:0
peer open "$port"
stop
grep -q 'FILE DESCRIPTORS' "$work/valgrind" || fail 'valgrind has no report'
awk '/Open [^ ]* *.*descriptor|Open .*socket/ { n++ } /<inherited from parent>/ { n-- }
    END { exit n != 0 }' "$work/valgrind" || fail "descriptors are left: $(cat "$work/valgrind")"
claim 'the same claims hold under valgrind, which finds no error, no leak and no descriptor'

start "$bin/plain/socks" 127.0.0.1:0
measure socks
stop
start "$bin/plain/socks_threads" 127.0.0.1 0
name=socks_threads
by_curl
measure socks_threads
ends
start "$bin/plain/socks_threads" 127.0.0.1 0 me secret
by_curl_with_login
ends
port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
microsocks -i 127.0.0.1 -p "$port" 2>/dev/null &
server=$!
until_true curl --silent --socks5 "127.0.0.1:$port" -r 0-0 -o "$work/first" \
    "http://127.0.0.1:$web/file"
measure microsocks
ends
