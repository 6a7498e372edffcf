#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Faults without a seam: shipped builds of programs, with system calls that strace makes fail, or
# with descriptors and memory limited by prlimit. Nothing may crash or hang; a harmless failure must
# have no visible effect.
#
#   tests/fault/shipped.sh [DIRECTORY]     with examples/ and bench/ as built; default: build
#
# Needs strace and prlimit. The last line is "shipped: N passed, N failed"; exit status accordingly.
set -u
bin=${1:-build}
passed=0
failed=0
for tool in strace:strace prlimit:util-linux; do
    command -v "${tool%:*}" >/dev/null || {
        echo "${tool%:*}: not found; Debian package: ${tool#*:}"
        exit 1
    }
done
. "$(dirname "$0")/../../bench/tools/server.sh"

# check WHAT CONDITION...: counts; prints WHAT if the condition does not hold.
check() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $what: $*"
    fi
}
# An exit status of the program's own: no signal, and not that of timeout.
in_order() { [ "$1" -lt 124 ]; }
# with_fault CALL ERROR WHEN: the prefix for a command.
with_fault() {
    echo "strace -f -o $work/trace -e trace=$1 -e inject=$1:error=${2#=}:when=$3"
}
was_met() { grep -q INJECTED "$work/trace"; }

# ---- a program that starts, sleeps, joins and ends
# call, errors; "=" before an error: the program must not notice it
starts='
epoll_create1 EMFILE ENFILE ENOMEM ENOSYS
eventfd2 EMFILE ENFILE ENOMEM ENODEV
timerfd_create EMFILE ENFILE ENOMEM ENODEV
timerfd_settime =ENOSYS =EPERM
epoll_ctl ENOMEM ENOSPC
epoll_wait =EINTR
epoll_pwait2 =EINTR =ENOSYS =EPERM =EINVAL
clone3 EAGAIN EPERM
sched_getaffinity =ENOSYS =EINVAL
getrandom =ENOSYS =EAGAIN
futex =EINTR =EAGAIN'

# try_start CALL ERROR WHEN: the program under that fault. A fault that it does not reach is not
# counted.
try_start() {
    status=0
    # shellcheck disable=SC2046
    timeout -s KILL 20 $(with_fault "$@") "$bin/examples/02_sleep_join" >"$work/out" 2>&1 ||
        status=$?
    was_met || return 0
    what="02_sleep_join, $1 gives ${2#=}, when=$3"
    check "$what" in_order "$status"
    [ "${2#=}" = "$2" ] || check "$what" cmp -s "$work/out" "$work/want"
}
try_starts() {
    "$bin/examples/02_sleep_join" >"$work/want"
    echo "$starts" | sed 1d >"$work/starts"
    while read -r call errors; do
        for error in $errors; do
            # if these calls always failed, no thread would receive any event
            case $call:$error in
            epoll_wait:* | epoll_pwait2:=EINTR | futex:*) whens='1 2 3 1..20' ;;
            *) whens='1 2 3 4 1+ 2+' ;;
            esac
            for when in $whens; do try_start "$call" "$error" "$when"; done
        done
    done <"$work/starts"
}

# ---- an echo server under load

serves='
accept4 =EMFILE =ENFILE =ENOMEM =ECONNABORTED =EPROTO =EINTR EPERM EINVAL
socket EMFILE EAFNOSUPPORT
bind EADDRINUSE EACCES
listen EADDRINUSE
setsockopt ENOPROTOOPT
getsockname ENOBUFS
epoll_ctl ENOMEM ENOSPC
sendto ECONNRESET EPIPE ENOBUFS =EINTR
getsockopt =ENOPROTOOPT'

# serve WRAPPER...: starts the server under it; the pid file names the server itself, for the
# signal.
serve() {
    : >"$work/server"
    timeout -s KILL 30 "$@" sh -c 'echo $$ >"$0"; exec "$@"' "$work/pid" \
        "$bin/bench/echo_server" 0 2 20 >"$work/server" 2>"$work/error" &
    server=$!
    port=
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        port=$(value port "$work/server")
        [ -z "$port" ] || return 0
        kill -0 "$server" 2>/dev/null || return 0 # it may refuse to start
        sleep 0.1
    done
}
end_server() {
    [ -z "$port" ] || kill -TERM "$(cat "$work/pid")" 2>/dev/null
    status=0
    wait "$server" 2>/dev/null || status=$?
    server=
}
try_serve() {
    # shellcheck disable=SC2046
    serve $(with_fault "$@")
    load=1
    if [ -n "$port" ]; then
        load=0
        timeout -s KILL 20 "$bin/bench/load" --port "$port" --conns 4 --seconds 1 --size 64 \
            >"$work/load" 2>&1 || load=$?
    fi
    end_server
    was_met || return 0
    what="echo_server, $1 gives ${2#=}, when=$3"
    check "$what" in_order "$status"
    [ "${2#=}" = "$2" ] || check "$what" [ "$status,$load" = 0,0 ]
}
try_serves() {
    echo "$serves" | sed 1d >"$work/serves"
    while read -r call errors; do
        for error in $errors; do
            for when in 1 3; do try_serve "$call" "$error" "$when"; done
        done
    done <"$work/serves"
}

# ---- limits of the process

# Fewer descriptors than connections: those that fit are served, the others wait.
try_descriptors() {
    for most in 4 5 6 7 8 9 10 11 12 14; do
        status=0
        timeout -s KILL 20 prlimit --nofile="$most" "$bin/examples/02_sleep_join" \
            >"$work/out" 2>&1 || status=$?
        check "02_sleep_join with $most descriptors" in_order "$status"
    done
    serve strace -f -o "$work/trace" -e trace=accept4 prlimit --nofile=14
    timeout -s KILL 20 "$bin/bench/load" --port "${port:-1}" --conns 12 --seconds 1 --size 64 \
        >"$work/load" 2>&1
    end_server
    refused=$(grep -c EMFILE "$work/trace")
    check "echo_server out of descriptors" in_order "$status"
    check "echo_server out of descriptors: EMFILE was met" [ "$refused" -gt 0 ]
    check "echo_server out of descriptors: backs off" [ "$refused" -lt 40 ]
}
try_memory() {
    for most in 2 3 4 5 6 8 12 16 32; do
        status=0
        timeout -s KILL 20 prlimit --as=$((most * 1048576)) "$bin/examples/02_sleep_join" \
            >"$work/out" 2>&1 || status=$?
        # the dynamic linker reports its own lack of memory by 127
        check "02_sleep_join in $most MiB" [ "$status" -le 127 ]
    done
}

try_starts
try_descriptors
try_memory
try_serves
echo "shipped: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
