#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/dns.c between dig and dnsmasq, which serves names of its own only, and
# against the clients and servers of dns.py. All addresses are on loopback.
#   tests/tools/programs/dns.sh DIRECTORY     with the program, which make builds
set -eu
dns=$1/dns
here=$(dirname "$0")
. "$here/../../../bench/tools/server.sh"
upstream= helper= client=
PATH=$PATH:/usr/sbin # of dnsmasq
cleanup() {
    for process in $server $upstream $helper $client; do
        kill -KILL "$process" 2>/dev/null || :
    done
    rm -rf "$work"
}
said() { echo "dns: $*"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
    said "$1"
}
# until_is COMMAND...  Repeats a command until it succeeds.
until_is() {
    for _ in $(seq 150); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "not within 15 s: $*"
}

# The free port of dnsmasq is found by trying.
upstream_start() {
    for _ in $(seq 20); do
        upstream_port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 30000))
        : >"$work/log"
        dnsmasq --keep-in-foreground --port="$upstream_port" --listen-address=127.0.0.1 \
            --bind-interfaces --conf-file=/dev/null --pid-file= --user="$(id -un)" --no-resolv \
            --no-hosts --cache-size=0 --local-ttl=300 --local=/test/ --log-queries \
            --log-facility="$work/log" --host-record=one.test,127.0.0.11,::11,60 \
            --host-record=short.test,127.0.0.12,1 --cname=alias.test,one.test \
            --mx-host=one.test,mail.test,10 --txt-record=one.test,'some words' \
            --srv-host=_a._tcp.test,one.test,80,1,2 --address=/wild.test/127.0.0.99 \
            --ptr-record=11.0.0.127.in-addr.arpa,one.test --caa-record=one.test,0,issue,ca.test \
            $(seq -f '--host-record=many.test,127.0.1.%.0f' 100) 2>"$work/dnsmasq" &
        upstream=$!
        until grep -q started "$work/log" || ! kill -0 "$upstream" 2>/dev/null; do sleep 0.1; done
        ! grep -q started "$work/log" || return 0
        wait "$upstream" 2>/dev/null || :
    done
    fail "dnsmasq did not start: $(cat "$work/dnsmasq" "$work/log")"
}
upstream_stop() {
    kill -KILL "$upstream"
    wait "$upstream" 2>/dev/null || :
    upstream=
}
# n_asked KIND NAME  The number of such queries that dnsmasq has received.
n_asked() { grep -c "query\[$1\] $2 from" "$work/log" || :; }

# helper_start MODE  A server of dns.py; sets $helper_port.
helper_start() {
    python3 "$here/dns.py" "$1" >"$work/helper" &
    helper=$!
    until_is grep -q port "$work/helper"
    helper_port=$(value port "$work/helper")
}
helper_stop() {
    kill "$helper"
    wait "$helper" 2>/dev/null || :
    helper=
}

# counter NAME  A number that the forwarder has counted.
counter() {
    n_lines=$(wc -l <"$work/counters")
    kill -USR1 "$server"
    until_is more_lines
    tail -n 1 "$work/counters" | tr ' ' '\n' | sed -n "/^$1\$/{n;p;}"
}
more_lines() { [ "$(wc -l <"$work/counters")" -gt "$n_lines" ]; }
# counts NAME NUMBER  1 if the counter has that value.
counts() { [ "$(counter "$1")" -eq "$2" ]; }

# ask PORT WORDS_OF_DIG...  The status and the sorted records, without their TTLs.
ask() {
    to=$1
    shift
    dig @127.0.0.1 -p "$to" +tries=1 +time=15 +noall +comments +answer "$@" |
        awk '/status:/ { print $6 } /^[^;]/ { $2 = ""; print }' | sort
}
ttl_of() {
    dig @127.0.0.1 -p "$port" +tries=1 +time=15 +noall +answer "$1" | awk '{ print $2; exit }'
}
status_of() { ask "$@" | sed -n 's/,$//p'; }

answers_are_equal() {
    for words in one.test 'one.test AAAA' 'one.test MX' 'one.test TXT' 'one.test CAA' \
        'one.test NS' '_a._tcp.test SRV' 'alias.test' '-x 127.0.0.11' 'a.B.wild.test' 'none.test' \
        'many.test' 'many.test +bufsize=4096' 'many.test +tcp' 'one.test +tcp' 'one.test +noedns' \
        'many.test +noedns' 'one.test +dnssec'; do
        direct=$(ask "$upstream_port" $words)
        [ -n "$direct" ] || fail "dnsmasq does not answer: $words"
        [ "$(ask "$port" $words)" = "$direct" ] || fail "not the answer of dnsmasq: $words"
    done
    said 'answers of 18 kinds are those of dnsmasq'
    same 'an answer that is too long for a datagram is fetched over TCP' 1 \
        "$(counter fetches)"
    same 'a client gets the TC bit and no part of an answer that is too long' '0 TC' \
        "$(dig @127.0.0.1 -p "$port" +ignore +noall +comments +answer many.test |
            awk '/^[^;]/ { n++ } /flags:.* tc / { tc = "TC" } END { print n + 0, tc }')"
}
refusals() {
    same 'a query of another class is refused' REFUSED "$(status_of "$port" one.test -c CH)"
    same 'a query without recursion is refused' REFUSED "$(status_of "$port" one.test +norecurse)"
    same 'a transfer of a zone is not implemented' NOTIMP \
        "$(status_of "$port" test AXFR +onesoa +comments)"
    same 'an unknown version of EDNS is answered by BADVERS' BADVERS \
        "$(status_of "$port" one.test +edns=1 +noednsnegotiation)"
}
cache() {
    first=$(ask "$port" first.wild.test)
    ask "$port" FIRST.wild.TEST >"$work/second"
    same 'dnsmasq is asked once for a name that is asked twice' 1 "$(n_asked A first.wild.test)"
    [ "$(ttl_of one.test)" -le 60 ] || fail 'a TTL has grown'
    until_is ttl_is_below 60 one.test
    said 'the TTL of a cached answer falls'
    ask "$port" short.test >"$work/short"
    until_is asked_again short.test
    said 'an answer that has expired is asked for again'
}
ttl_is_below() { [ "$(ttl_of "$2")" -lt "$1" ]; }
asked_again() {
    ask "$port" "$1" >"$work/short"
    [ "$(n_asked A "$1")" -gt 1 ]
}
# dnsmasq is stopped until all queries have arrived.
equal_queries_share() {
    lookups=$(counter lookups)
    kill -STOP "$upstream"
    python3 "$here/dns.py" burst "$port" burst.wild.test >"$work/burst" &
    client=$!
    until_is counts shared 199
    kill -CONT "$upstream"
    wait "$client" || fail 'the burst'
    client=
    same '200 equal queries at once are all answered' 200 "$(value answers "$work/burst")"
    same '200 equal queries at once share one look-up' $((lookups + 1)) "$(counter lookups)"
}
malformed() {
    before=$(counter malformed)
    sent=$(python3 "$here/dns.py" malformed "$port" | sed 's/sent //')
    until_is counts malformed $((before + sent))
    said "$sent malformed queries are dropped"
    python3 "$here/dns.py" noise "$port" || fail 'a broken stream was not closed'
    same 'a query after noise is answered' \
        "$(ask "$upstream_port" one.test)" "$(ask "$port" one.test)"
}
stops_with_a_silent_client() {
    mkfifo "$work/fifo"
    nc -v 127.0.0.1 "$port" <"$work/fifo" 2>"$work/silent" &
    client=$!
    exec 3>"$work/fifo"
    until_is grep -q succeeded "$work/silent"
    stop
    exec 3>&-
    wait "$client" || fail 'the silent client'
    client=
    said 'the forwarder stops while a silent client is connected'
}

# The first upstream server refuses, the second one is silent.
dead_servers() {
    helper_start silent
    start "$dns" 127.0.0.1:0 127.0.0.1:1 "127.0.0.1:$helper_port" "127.0.0.1:$upstream_port" \
        2>"$work/counters"
    same 'two dead servers are passed over' "$(ask "$upstream_port" one.test)" \
        "$(ask "$port" one.test)"
    same 'each dead server costs one attempt' 3 "$(counter attempts)"
    ask "$port" one.test MX >"$work/next"
    same 'the next look-up begins with the server that answers' 4 "$(counter attempts)"
    stop
    helper_stop
}
lies() {
    helper_start liar
    start "$dns" 127.0.0.1:0 "127.0.0.1:$helper_port" 2>"$work/counters"
    same 'answers with a wrong id, question or form are not taken' \
        'NOERROR, host.test.  IN A 127.0.0.33 ' "$(ask "$port" host.test | tr '\n' ' ')"
    same 'a name that does not exist is cached' 'NXDOMAIN NXDOMAIN 2' \
        "$(status_of "$port" no.test) $(status_of "$port" no.test) $(counter lookups)"
    until_is denial_has_expired
    said 'a name that does not exist is asked for again when its SOA record says so'
    same 'an answer longer than its datagram is fetched over TCP in each attempt' 'SERVFAIL 2' \
        "$(status_of "$port" big.test) $(counter fetches)"
    stop
    helper_stop
}
denial_has_expired() {
    ask "$port" no.test >"$work/denial"
    [ "$(counter lookups)" -gt 2 ]
}
wildcard() {
    start "$dns" '*:0' "127.0.0.1:$upstream_port" 2>"$work/counters"
    for to in 127.0.0.1 127.0.0.2 ::1; do # dig drops an answer from another address
        [ "$(dig "@$to" -p "$port" +tries=1 +time=15 +short one.test)" = 127.0.0.11 ] ||
            [ "$to" = ::1 -a ! -e /proc/net/if_inet6 ] || fail "no answer from $to"
    done
    said 'on a wildcard address the answer comes from the address that was asked'
    stop
}
cache_is_bounded() {
    start "$dns" -c 64 127.0.0.1:0 "127.0.0.1:$upstream_port" 2>"$work/counters"
    seq -f '@127.0.0.1 name%.0f.wild.test' 500 >"$work/names"
    dig -p "$port" +short -f "$work/names" >"$work/answers"
    same '500 names are answered with a cache of 64 KiB' 500 "$(grep -c 127.0.0.99 "$work/answers")"
    bytes=$(counter bytes)
    [ "$bytes" -le 65536 ] && [ "$bytes" -gt 32768 ] || fail "the cache has $bytes bytes"
    ask "$port" name500.wild.test >"$work/last"
    ask "$port" name1.wild.test >"$work/first"
    same 'the oldest name is no longer in a full cache, and the newest is' '2 1' \
        "$(n_asked A name1.wild.test) $(n_asked A name500.wild.test)"
    stop
}
few_descriptors() {
    start sh -c 'ulimit -n 24; exec "$@"' sh "$dns" 127.0.0.1:0 "127.0.0.1:$upstream_port" \
        2>"$work/counters"
    answer=$(ask "$port" one.test)
    rm -f "$work/fifo"
    mkfifo "$work/fifo"
    python3 "$here/dns.py" crowd "$port" <"$work/fifo" >"$work/crowd" &
    client=$!
    exec 3>"$work/fifo"
    until_is grep -q open "$work/crowd"
    same 'a cached name is answered while no descriptor is left' "$answer" "$(ask "$port" one.test)"
    same 'a name that is not cached fails while no descriptor is left' SERVFAIL "$(status_of "$port" one.test MX)"
    exec 3>&-
    wait "$client" || fail 'the crowd'
    client=
    until_is is_answered one.test MX
    said 'a name is looked up once there are descriptors again'
    stop
}
is_answered() { [ "$(status_of "$port" "$@")" = NOERROR ]; }

upstream_start
start "$dns" 127.0.0.1:0 "127.0.0.1:$upstream_port" 2>"$work/counters"
answers_are_equal
refusals
cache
equal_queries_share
malformed
cached=$(ask "$port" one.test MX)
upstream_stop
same 'the cache answers while dnsmasq is stopped' "$cached" "$(ask "$port" one.test MX)"
same 'a look-up fails while dnsmasq is stopped' SERVFAIL "$(status_of "$port" fresh.wild.test)"
stops_with_a_silent_client
upstream_start
dead_servers
lies
wildcard
cache_is_bounded
few_descriptors
upstream_stop
