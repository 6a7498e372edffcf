#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/supervisor.c with services that print, crash, hang, ignore signals, and
# leave processes behind.
#
#   tests/tools/programs/supervisor.sh DIRECTORY     with the program
#
# Prints its checks. Needs strace, valgrind and pgrep. The caller sets a time limit.
set -eu
bin=$1
name=supervisor
here=$(dirname "$0")
. "$here/../../../bench/tools/server.sh"
log=$work/log
tag=31415926$$ # is in the seconds of each sleep, so that pgrep finds the processes of this run only
# Replaces that of server.sh. The argument of each supervisor contains $work.
cleanup() {
    for process in $(pgrep -f "$tag|$work"); do kill -KILL "$process" 2>/dev/null || :; done
    rm -rf "$work"
}

claim() { echo "$name: $*"; }
# same CLAIM WANT GOT
same() {
    [ "$2" = "$3" ] || { tail "$log" >&2 && fail "$1: wanted '$2', got '$3'"; }
    claim "$1"
}
# until_has FILE PATTERN [COUNT]  Waits until COUNT lines of the file match, or one.
until_has() {
    tries=0
    until [ "$(grep -c "$2" "$1")" -ge "${3:-1}" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { tail "$1" >&2 && fail "no '$2' came"; }
        sleep 0.1
    done
}
now() { date +%s%N | cut -b -13; } # in ms
# services COMMAND...  Starts the supervisor, or a program that runs it, with the file $work/conf.
services() {
    : >"$log"
    "$@" "$bin/supervisor" "$work/conf" >"$log" 2>"$work/errors" &
    server=$!
}
# are_gone CLAIM
are_gone() {
    ! pgrep -f "$tag" >"$work/left" || fail "$1: there are left: $(cat "$work/left")"
    claim "$1"
}

# ---- in the background: a service that crashes, from its start until it is down

crash_begin() {
    echo "crash sh -c 'date +%s%N; exit 3'" >"$work/crash.conf"
    "$bin/supervisor" "$work/crash.conf" >"$work/crash" &
    crashing=$!
}
crash_end() {
    ended=0
    wait "$crashing" || ended=$?
    same 'a supervisor with a service that is down fails' 1 "$ended"
    same 'a service that crashes is down after 8 runs' 'is down: 8 runs in a row were short' \
        "$(tail -n 1 "$work/crash" | sed 's/^crash : //')"
    same 'and each end is logged' 8 "$(grep -c '^crash : has ended: status 3$' "$work/crash")"
    awk '/^crash \|/ {
            at = substr($3, 1, length($3) - 6)
            if (n++ && at - last < 100 * 2 ^ (n - 2)) bad = bad " " at - last
            last = at
        }
        END { if (n != 8 || bad) { print n " starts, too early after ms:" bad; exit 1 } }' \
        "$work/crash" || fail 'the pauses do not grow'
    claim 'it is started again after 100, 200, 400, 800, 1600, 3200 and 6400 ms or more'
}

# ---- checks

output_in_order() {
    cat >"$work/conf" <<END
# lines, a line that is too long, one without an end, and both streams
lines runs=1 seq 1 20000
long runs=1 sh -c 'head -c 5000 /dev/zero | tr "\\0" x; echo; echo behind it'
part runs=1 sh -c 'echo whole; printf part'
both runs=1 sh -c 'for i in 1 2 3; do echo "out \$i"; echo "err \$i" >&2; done'
END
    services env
    wait "$server" || fail "the supervisor ended with status $?"
    seq 1 20000 | sed 's/^/lines | /' >"$work/want"
    grep '^lines |' "$log" | cmp - "$work/want" || fail 'lines are not in order'
    claim '20000 lines of a child are logged in order'
    same 'a line that is too long is left out' \
        "$(printf 'long | (a line that is too long)\nlong | behind it')" "$(grep '^long |' "$log")"
    same 'the end of an output need not be a line' \
        "$(printf 'part | whole\npart | part')" "$(grep '^part |' "$log")"
    same 'stdout and stderr are in the order in which they were written' \
        'out 1,err 1,out 2,err 2,out 3,err 3,' "$(sed -n 's/^both | //p' "$log" | tr '\n' ,)"
}

errors_of_exec() {
    printf 'missing /no/such/file\nplain %s\n' "$work/conf" >"$work/conf"
    services env
    until_has "$log" '^plain : cannot start'
    until_has "$log" '^missing : cannot start'
    kill -TERM "$server"
    wait "$server" || fail "the supervisor ended with status $?"
    same 'a missing file is logged with its errno' 'ENOENT' \
        "$(sed -n '/^missing/s/.*(\(.*\))/\1/p' "$log" | head -n 1)"
    same 'so is one that cannot be executed' 'EACCES' \
        "$(sed -n '/^plain/s/.*(\(.*\))/\1/p' "$log" | head -n 1)"
}

# pid SERVICE  The process of its last run.
pid() { sed -n "s/^$1 : runs as process //p" "$log" | tail -n 1; }
reload() {
    cat >"$work/conf" <<END
stays sleep $tag.1
changes sleep $tag.2
goes sleep $tag.3
END
    services env
    until_has "$log" 'runs as process' 3
    stays=$(pid stays)
    echo 'broken limit=none sleep 1' >>"$work/conf"
    kill -HUP "$server"
    until_has "$log" 'line 4: an option is not a number'
    same 'after a broken file all services run on' 3 "$(pgrep -c -f "sleep $tag")"
    cat >"$work/conf" <<END
comes sleep $tag.4
changes grace=1 sleep $tag.2
stays sleep $tag.1
END
    kill -HUP "$server"
    until_has "$log" 'runs as process' 5
    until_has "$log" '^goes : was stopped: SIGTERM'
    same 'SIGHUP leaves a service that did not change' "$stays" "$(pid stays)"
    same 'SIGHUP stops a changed one before its next run' \
        'runs as process,was stopped: SIGTERM,runs as process,' \
        "$(sed -n 's/^changes : \([^0-9]*[a-zA-Z]\).*/\1/p' "$log" | tr '\n' ,)"
    same 'SIGHUP starts a new one and stops a removed one' \
        "sleep $tag.1 sleep $tag.2 sleep $tag.4 " \
        "$(pgrep -a -f "sleep $tag" | cut -d ' ' -f 2- | sort | tr '\n' ' ')"
    stop
    are_gone 'a stop leaves no process'
}

signals_and_limits() {
    cat >"$work/conf" <<END
stubborn grace=1 sh -c 'trap "" TERM; echo up; while :; do sleep 0.0$tag; done'
limited limit=1 sh -c 'echo up; exec sleep $tag.5'
leaves runs=1 sh -c 'sleep $tag.6 & echo up'
END
    services env
    until_has "$log" '^stubborn | up'
    until_has "$log" '^limited : was stopped at its time limit: SIGTERM'
    until_has "$log" '^leaves : has ended: status 0'
    same 'a process that a service leaves behind ends with it' '' "$(pgrep -f "sleep $tag.6" || :)"
    claim 'a run is stopped at its time limit'
    began=$(now)
    stop
    took=$(($(now) - began))
    [ "$took" -ge 1000 ] || fail "a grace of 1 s took $took ms"
    same 'a child that ignores SIGTERM gets SIGKILL after its grace' \
        'stubborn : was stopped: SIGKILL' "$(grep '^stubborn : was' "$log")"
    are_gone 'and leaves no process'

    echo "stubborn grace=1000 sh -c 'trap \"\" TERM; echo up; while :; do sleep 0.0$tag; done'" \
        >"$work/conf"
    services env
    until_has "$log" '^stubborn | up'
    kill -TERM "$server"
    kill -INT "$server"
    wait "$server" || fail "the supervisor ended with status $?"
    are_gone 'a second signal ends the grace'
}

# The log is a pipe that is not read, and a service fills it.
a_log_that_is_stuck() {
    echo "flood sh -c 'yes $tag'" >"$work/conf"
    mkfifo "$work/fifo"
    "$bin/supervisor" "$work/conf" >"$work/fifo" 2>"$work/errors" &
    server=$!
    exec 3<"$work/fifo"
    head -n 5 <&3 >"$work/first"
    kill -TERM "$server"
    wait "$server" || fail "the supervisor ended with status $?"
    exec 3<&-
    ! grep . "$work/errors" || fail 'the supervisor has reported an error'
    are_gone 'a log that takes nothing does not keep the supervisor from its end'
}

# Ten services at a time run 1000 children each; another service keeps the supervisor alive.
many_children() {
    for i in 0 1 2 3 4 5 6 7 8 9; do echo "job$i runs=1000 true"; done >"$work/conf"
    echo "other sleep $tag.7" >>"$work/conf"
    began=$(now)
    services env
    until_has "$log" 'has ended: status 0' 10000
    claim "10000 children have ended after $(($(now) - began)) ms"
    same 'none of them is a zombie' "sleep $tag.7" "$(pgrep -a -P "$server" | cut -d ' ' -f 2-)"
    same 'and none is started beyond its number' 10001 "$(grep -c 'runs as process' "$log")"
    stop
}

# strace writes a file for each thread and process. In those of the supervisor the C library may set
# a real-time signal of its own; a child sets each signal to its default, between vfork and exec.
no_signal_handler() {
    cat >"$work/conf" <<END
true runs=3 true
none /no/such/file
ends sleep $tag.8
END
    services strace -ff -o "$work/strace" -e trace=rt_sigaction,execve,vfork,clone,clone3
    until_has "$log" '^true : has ended' 3
    until_has "$log" '^ends : runs'
    until_has "$log" '^none : cannot start'
    kill -TERM "$(pgrep -P "$server" -f "^$bin/supervisor")"
    wait "$server" || fail "strace ended with status $?"
    for file in "$work"/strace.*; do sed "s/^/${file##*.} /" "$file"; done >"$work/calls"
    awk '{ text[NR] = $0; pid[NR] = $1 }
        NR == 1 || /CLONE_THREAD/ { ours[NR == 1 ? $1 : $NF] = 1 }
        $2 ~ /^vfork/ { child[$NF] = 1 }
        END {
            for (i = 1; i <= NR; i++) {
                if (pid[i] in child && text[i] ~ /execve.*= 0$/) delete child[pid[i]]
                if (text[i] !~ /rt_sigaction/) continue
                if (pid[i] in child && text[i] ~ /sa_handler=SIG_DFL/) n++
                else if (pid[i] in child || (pid[i] in ours && text[i] !~ /\(SIGRT/)) print text[i]
            }
            if (n < 100) print "the children have set " n + 0 " signals to their default"
        }' "$work/calls" >"$work/handlers"
    same 'no thread of the supervisor sets a signal handler, and a child sets defaults only' '' \
        "$(cat "$work/handlers")"
}

leaves_nothing() {
    printf "hello runs=3 sh -c 'echo a; echo b >&2'\nnone /no/such/file\nlong sleep %s\n" "$tag.9" \
        >"$work/conf"
    services valgrind --quiet --leak-check=full --error-exitcode=9 --track-fds=yes \
        --log-file="$work/valgrind.%p"
    until_has "$log" '^hello : has ended' 3
    until_has "$log" '^none : cannot start'
    kill -HUP "$server"
    stop
    cat "$work/valgrind.$(sed -n 's/.*==\([0-9]*\)==.*FILE DESCRIPTORS.*/\1/p' \
        "$work"/valgrind.* | head -n 1)" >"$work/fds"
    awk '/Open .*(descriptor|socket)/ { n++ } /<inherited from parent>/ { n-- }
        END { exit n != 0 }' "$work/fds" || fail "descriptors are left: $(cat "$work/fds")"
    claim 'it leaves no memory and no descriptor'
}

crash_begin
output_in_order
errors_of_exec
reload
signals_and_limits
a_log_that_is_stuck
many_children
no_signal_handler
leaves_nothing
crash_end
are_gone 'no process is left'
