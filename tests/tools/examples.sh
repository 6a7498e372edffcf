#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs an example in its use: with real clients, real servers, and the output that its head shows.
#
#   tests/tools/examples.sh DIRECTORY EXAMPLE     with the programs, which make builds; such as
#   06_http
#
# Prints its checks. The kernel chooses the ports. The caller sets a time limit: a server that does
# not end is waited for, and killed when the script is.
set -eu
bin=$1
name=$2
here=$(dirname "$0")
sources=$here/../../examples
. "$here/../../bench/tools/server.sh"

# golden SOURCE COMMAND...  The command prints the output shown at the head of its source.
golden() {
    source=$1
    shift
    timeout 60 "$@" >"$work/out" || fail "$1: exit status $?"
    as_said "$source" "$work/out"
}
# as_said SOURCE FILE
as_said() {
    sed -n '/^\/\/ Expected output/,/^[^\/]/s|^// ||p' "$sources/$1" | sed 1d >"$work/want"
    [ -s "$work/want" ] || fail "$1 has no expected output"
    diff "$work/want" "$2" || fail "$1: not the expected output"
    echo "$name: $(wc -l <"$2") lines as expected"
}

# same TITLE WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    printf '%s: %s: %s\n' "$name" "$1" "$2"
}

# until_has FILE TEXT  Waits until the file contains the text.
until_has() {
    tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "no '$2' came"
        sleep 0.1
    done
}

ask() { curl --silent --show-error --max-time 20 "$@"; }
# raw TEXT  Sends the bytes, reads until the server closes, prints the status codes of the answers.
raw() { printf "$1" | timeout 20 nc -N 127.0.0.1 "$port" | statuses; }
statuses() { grep -o 'HTTP/1.1 [0-9]*' | awk '{ printf "%s%s", (NR > 1 ? " " : ""), $2 }'; }

# In the background: a request that arrives at a byte per second is refused after 5 s, although each
# byte is in time.
drip() {
    for byte in G E T ' ' / ' ' H T T P / 1; do
        printf '%s' "$byte"
        sleep 1
    done | timeout 10 nc 127.0.0.1 "$port" >"$work/slow"
}

http_curl() {
    same 'one connection' '200 1 52, 200 0 52, 404 0 9' \
        "$(ask -o "$work/a" -o "$work/b" -o "$work/c" "$url/" "$url/?x" "$url/none" \
            -w '%{http_code} %{num_connects} %{size_download}, ' | sed 's/, $//')"
    same 'echo' 'some words' "$(ask -d 'some words' "$url/echo")"
    same 'an empty body' '200 0' "$(ask -X POST -w '%{http_code} %{size_download}' "$url/echo")"
    same 'head' '52' "$(ask -I "$url/" | awk 'tolower($1) == "content-length:" { print $2 + 0 }')"
    head -c 3500 /dev/urandom >"$work/sent"
    ask --data-binary "@$work/sent" "$url/echo" | cmp - "$work/sent" || fail 'echo of 3500 bytes'
}

http_refusals() {
    long=$(head -c 5000 /dev/zero | tr '\0' x)
    same 'a long header' 431 "$(ask -o "$work/a" -w '%{http_code}' -H "X: $long" "$url/")"
    same 'a long body' 413 "$(ask -o "$work/a" -w '%{http_code}' -d "$long" "$url/echo")"
    for _ in 1 2 3 4 5; do # unread input must not destroy the answer
        same 'three megabytes' 431 \
            "$(head -c 3000000 /dev/zero | timeout 20 nc -N 127.0.0.1 "$port" | statuses)"
    done
    same 'a chunked body' 501 \
        "$(ask -o "$work/a" -w '%{http_code}' -H 'Transfer-Encoding: chunked' -d x "$url/echo")"
    same 'leave to send a body' 417 \
        "$(ask -o "$work/a" -w '%{http_code}' -H 'Expect: 100-continue' -d x "$url/echo")"
    for request in 'GET /\r\n' 'GET / HTTP/1.1\r\n' \
        'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n' 'GET / HTTP/1.1\r\nHost : x\r\n' \
        'GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n' 'GET / HTTP/1.1\r\nHost: x\n\r\n' \
        'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n' \
        'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n'; do
        same "$request" 400 "$(raw "$request\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")"
    done
}

http_raw() {
    get='GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    post='POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n'
    none='GET /none HTTP/1.1\r\nHost: x\r\n\r\n'
    last='GET / HTTP/1.1\r\nHost: x\r\nConnection: a, Close\r\n\r\n'
    same 'pipelined' '200 200 404 200' "$(raw "$get${post}abc$none$get")"
    same 'a head has no body' 1 \
        "$(printf "HEAD${get#GET}$get" | timeout 20 nc -N 127.0.0.1 "$port" | grep -c works)"
    same 'asked to close' '200' "$(raw "$last$get")"
    same 'HTTP/1.0' '200' "$(raw "GET / HTTP/1.0\r\n\r\n$get")"
    same 'gone in the middle' '' "$(raw "${post}a")"
}

http_load() {
    timeout 30 wrk -t 1 -c 20 -d 1s "$url/" >"$work/wrk"
    ! grep -E 'Socket errors|Non-2xx' "$work/wrk" || fail 'wrk has seen errors'
    awk '/requests in/ { n = $1 } END { exit !(n > 0) }' "$work/wrk" || fail 'wrk has had no answer'
    echo "$name: wrk:$(sed -n 's/^Requests.sec://p' "$work/wrk") requests a second, no errors"
    timeout 30 h2load --h1 -n 2000 -c 10 -m 4 "$url/" >"$work/h2load"
    same 'h2load' '2000 2xx, 0 3xx, 0 4xx, 0 5xx' "$(sed -n 's/^status codes: //p' "$work/h2load")"
}

# open_client FILE  Descriptor 3 is the input to the server; its answers go to the file.
open_client() {
    mkfifo "$work/fifo"
    timeout 20 nc 127.0.0.1 "$port" <"$work/fifo" >"$1" &
    client=$!
    exec 3>"$work/fifo"
}

# When the server is stopped, a client has sent one request and a half: it gets its answer.
http_stop() {
    open_client "$work/late"
    printf 'GET /none HTTP/1.1\r\nHost: x\r\n\r\nGET / HT' >&3
    until_has "$work/late" 'Not Found$'
    kill -TERM "$server"
    # The server is stopping once connections are refused.
    until ! nc -z 127.0.0.1 "$port"; do sleep 0.1; done
    printf 'TP/1.1\r\nHost: x\r\n\r\n' >&3
    exec 3>&-
    wait "$client" || fail 'the late client'
    same 'begun before the stop' '404 200' "$(statuses <"$work/late")"
    grep -q '^Connection: close' "$work/late" || fail 'the stop does not show in the answer'
    stop
}

# A client that is connected when the server is stopped gets its echo, and then an end.
echo_client() {
    open_client "$work/echo"
    echo 'some words' >&3
    until_has "$work/echo" 'some words'
    stop
    exec 3>&-
    wait "$client" || fail 'the client'
    echo 'some words' | cmp - "$work/echo" || fail 'the echo differs'
}

# enter N  The Nth client; its input goes to $work/chat.N. Waits until it has been greeted.
enter() {
    mkfifo "$work/fifo.$1"
    timeout 30 nc -N 127.0.0.1 "$port" <"$work/fifo.$1" >"$work/chat.$1" &
    case $1 in
    1) exec 4>"$work/fifo.1" ;;
    2) second=$! && exec 5>"$work/fifo.2" ;;
    esac
    until_has "$work/chat.$1" "you are $1"
}
# Two clients talk, and one of them leaves.
chat() {
    enter 1
    enter 2
    printf 'hello\nis any' >&4
    until_has "$work/chat.2" 'hello'
    printf 'body here?\n\n' >&4
    until_has "$work/chat.2" 'here'
    echo 'yes' >&5
    until_has "$work/chat.1" 'yes'
    head -c 450 /dev/zero | tr '\0' x >&5
    echo >&5
    until_has "$work/chat.1" '^2: x\{50\}$'
    exec 5>&- # it leaves, and the server closes its connection
    wait "$second" || fail 'the second client'
    stop
    exec 4>&-
    same 'the first' '* you are 1,2: yes,2: 200,2: 200,2: 50,' \
        "$(awk '/x/ { $0 = "2: " length($2) } { printf "%s,", $0 }' "$work/chat.1")"
    same 'the second' '* you are 2,1: hello,1: is anybody here?,' "$(tr '\n' , <"$work/chat.2")"
}
# A client talks faster than another one reads: the latter is told exactly how much it has missed.
# It reads once a third one has heard the last line, so the server has read all 15 MB, of which the
# buffers of a connection that is not read hold a few.
chat_slowly() {
    enter 1
    enter 2
    mkfifo "$work/slow.in" "$work/slow.out"
    timeout 30 nc -N 127.0.0.1 "$port" <"$work/slow.in" >"$work/slow.out" &
    exec 7>"$work/slow.in" 6<"$work/slow.out"
    head -n 1 <&6 >"$work/slow.3" # the greeting: it is subscribed from now on
    awk 'BEGIN { for (i = 1; i <= 100000; i++) printf "%0150d\n", i; print "that is all" }' >&4
    until_has "$work/chat.2" 'that is all'
    (exec 4>&- 5>&- 7>&-; cat <&6 >>"$work/slow.3") &
    reader=$!
    until_has "$work/slow.3" 'that is all'
    stop
    exec 4>&- 5>&- 6<&- 7>&- # nc ends when its input and the connection have ended
    wait "$reader"
    same 'a slow one' 'lines were missed, 100000 in all' \
        "$(awk '/^1: 0/ { n++ } /missed/ { lost += $5; t++ }
            END { print "lines were", (t ? "missed," : "all read,"), n + lost, "in all" }' \
            "$work/slow.3")"
}

dashboard_start() {
    : >"$work/server"
    "$@" >"$work/server" &
    server=$!
    until_has "$work/server" '^http://127.0.0.1:[0-9]*/$'
    url=$(sed 's|/$||' "$work/server")
    port=${url##*:}
    sed "s|:$port/|:8080/|" "$work/server" >"$work/out"
    as_said 15_dashboard.c "$work/out"
}

# code OPTION...  The status of an answer; its body is in $work/body, its head in $work/head.
code() { ask -o "$work/body" -D "$work/head" -w '%{http_code}' "$@"; }

dashboard_page() {
    for file in / /style.css /app.js; do
        same "$file" 200 "$(code "$url$file")"
        ! grep -v xmlns= "$work/body" | grep -E 'https?:|innerHTML|outerHTML|insertAdj|eval\(' ||
            fail "$file: needs others, or takes text for markup"
    done
    policy="Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    same 'policy' 1 "$(grep -c "^$policy" "$work/head")"
    same 'one connection' '1 0 ' \
        "$(ask -o "$work/a" -o "$work/b" "$url/" "$url/app.js" -w '%{num_connects} ')"
    same 'the head of a stream' 200 "$(code -I "$url/events")"
    host='Host: localhost\r\n\r\n'
    printf "HEAD / HTTP/1.1\r\n${host}GET / HTTP/1.1\r\n$host" |
        timeout 20 nc -N 127.0.0.1 "$port" >"$work/both"
    same 'a head has no body' '2 1' \
        "$(grep -c '^HTTP/1.1 200' "$work/both") $(grep -c '^</html>' "$work/both")"
}

dashboard_refusals() {
    same 'no such page' 404 "$(code "$url/none")"
    same 'a path above' 404 "$(code --path-as-is "$url/../volt.h")"
    same 'a POST' 405 "$(code -d x "$url/")"
    same 'allowed methods' 'GET, HEAD' "$(tr -d '\r' <"$work/head" | sed -n 's/^Allow: //p')"
    same 'by another name' 403 "$(code -H "Host: example.test:$port" "$url/")"
    same 'by a longer name' 403 "$(code -H "Host: localhost.example.test:$port" "$url/")"
    same 'as localhost' 200 "$(code -H "Host: localhost:$port" "$url/")"
    same 'from another page' 403 "$(code -H 'Origin: http://example.test' "$url/dump.txt")"
    same 'from another port' 403 "$(code -H 'Origin: http://127.0.0.1:1' "$url/dump.txt")"
    same 'from the page' 200 "$(code -H "Origin: $url" "$url/dump.txt")"
    long=$(head -c 9000 /dev/zero | tr '\0' x)
    same 'a long header' 431 "$(code -H "X: $long" "$url/")"
    for request in 'GET /\r\n' 'GET / HTTP/1.1\r\n' 'GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n'; do
        same "$request" 400 "$(raw "$request\r\n")"
    done
}

# The stream until there are events, and both files.
dashboard_reports() {
    : >"$work/events"
    curl --silent --show-error --max-time 20 -N "$url/events" >"$work/events" &
    client=$!
    tries=0
    until [ "$(grep -c '^$' "$work/events")" -ge 4 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail 'no events came'
        sleep 0.1
    done
    same 'trace' 200 "$(code "$url/trace.json")"
    cp "$work/body" "$work/trace"
    same 'dump' 200 "$(code "$url/dump.txt")"
    grep -q '^task .* echo client, .* old: .* at .*15_dashboard.c:[0-9]*' "$work/body" ||
        fail 'no echo client in the dump'
    kill "$client"
    python3 "$here/dashboard.py" reports "$work/events" "$work/trace" "$1"
}

# A stream that is open when the server is stopped ends.
dashboard_stop() {
    : >"$work/events" # the events of an earlier stream must not count
    curl --silent --show-error --max-time 20 -N "$url/events" >"$work/events" &
    client=$!
    until_has "$work/events" '^data'
    stop
    wait "$client" || fail 'the stream did not end in order'
}

# misbehave ACCEPT_FAILS  Crowds, silence, floods and raw bytes, see tests/tools/servers.py.
misbehave() { python3 "$here/servers.py" "${name%-leaks}" "$bin/$name" "$1"; }

case $name in
03_echo)
    misbehave "$bin/accept_fails.so"
    start "$bin/03_echo" 0
    echo_client
    sed "s/^port $port\$/port 7000/" "$work/server" >"$work/out"
    as_said 03_echo.c "$work/out"
    ;;
06_http)
    misbehave "$bin/accept_fails.so"
    start "$bin/06_http"
    url=http://127.0.0.1:$port
    drip &
    slow=$!
    http_curl
    http_refusals
    http_raw
    http_load
    wait "$slow" || :
    same 'a byte a second' 408 "$(statuses <"$work/slow")"
    http_stop
    ;;
09_redis)
    redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' >"$work/log" &
    server=$!
    until_has "$work/log" 'ready to accept connections'
    golden 09_redis.c "$bin/09_redis" "unix:$work/redis"
    stop
    ;;
10_from_cpp*) golden 10_from_cpp.cpp "$bin/$name" ;;
13_chat)
    misbehave "$bin/accept_fails.so"
    start "$bin/13_chat" 0
    chat
    sed "s/^port $port\$/port 7000/" "$work/server" >"$work/out"
    as_said 13_chat.c "$work/out"
    start "$bin/13_chat" 0
    rm "$work"/fifo.*
    chat_slowly
    ;;
15_dashboard*)
    # The address sanitizer's library must come first, so nothing can be preloaded.
    misbehave "$([ "$name" = 15_dashboard ] && echo "$bin/accept_fails.so" || echo -)"
    timeout 60 "$bin/$name" 0 1 >"$work/a" || fail 'ends after a second'
    dashboard_start "$bin/$name"
    drip &
    slow=$!
    dashboard_page
    dashboard_refusals
    dashboard_reports "$([ "$name" = 15_dashboard ] && echo all || echo some)"
    wait "$slow" || :
    same 'a byte a second' 408 "$(statuses <"$work/slow")"
    python3 "$here/dashboard.py" slow "$port"
    dashboard_stop
    ;;
*) fail "no example of that name: $name" ;;
esac
