#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The tests on kernels without the features that volt.h can do without; tests/platform/old_kernel.h
# gives the answers. `make kernels` builds the programs and calls
#   sh tests/platform/kernels.sh DIR    DIR: the programs; logs go to DIR/log; JOBS of them run at a
#   time
# Runs each answer alone, in the tests that meet it most; then all calls together, in all tests.
# Prints one line for each run, and the sum. An answer that no test of its run has met is a failure.
dir=$1
export JOBS="${JOBS:-2}"
mkdir -p "$dir/log"

# call             answers             tests, less test_
alone='
accept4            ENOSYS EPERM EINVAL regress
eventfd            ENOSYS EPERM EINVAL public task
FUTEX_WAIT_BITSET  ENOSYS EPERM EINVAL public task guest
getrandom          ENOSYS EPERM EINVAL public regress
MADV_WIPEONFORK    ENOSYS EPERM EINVAL fork public
epoll_pwait2       ENOSYS EPERM EINVAL guest history rescue
EPOLLEXCLUSIVE     IGNORE ENOSYS EPERM EINVAL rescue public
membarrier         ENOSYS EPERM EINVAL task sync_stress
SO_PROTOCOL          ENOPROTOOPT         net regress answers
recvmmsg           ENOSYS EPERM EINVAL datagrams
sendmmsg           ENOSYS EPERM EINVAL datagrams
pidfd_open         ENOSYS EPERM EINVAL process
pidfd_send_signal  ENOSYS EPERM EINVAL process
SO_PEERPIDFD       ENOPROTOOPT         unix
preadv2            ENOSYS EOPNOTSUPP EPERM EINVAL dirs
splice             ENOSYS EPERM EINVAL streams
UDP_SEGMENT        IGNORE EIO EINVAL   datagrams
UDP_GRO            ENOPROTOOPT         datagrams
'
# EPERM and EINVAL once more for all together, in quick tests.
together='accept4 eventfd FUTEX_WAIT_BITSET getrandom MADV_WIPEONFORK epoll_pwait2 membarrier
    recvmmsg sendmmsg pidfd_open preadv2 splice'
slow='brackets idle steps queues ring_caps timers word'

# Tests that need a call: the call or call=answer, program, test, reason.
skips='
eventfd test_fault create_gives_error_of_failed_start counts the calls of eventfd
SO_PROTOCOL test_answers read_spares_useless_calls only TCP is known to be drained by a short read
SO_PROTOCOL test_calls read_ready_waits_without_system_calls the same
SO_PROTOCOL test_fds fd_probe_tells_kind_of_descriptor it asks for the protocol
EPOLLEXCLUSIVE=EINVAL test_fds reactor_init_opens_two_fds_or_none counts the calls of epoll_ctl
EPOLLEXCLUSIVE=EINVAL test_fds reactor_and_watchdog_accept_fd_0 counts the calls of epoll_ctl
EPOLLEXCLUSIVE test_idle event_wakes_its_worker_and_at_most_one_more the watch wakes all
EPOLLEXCLUSIVE test_idle wake_from_outside_wakes_at_most_two_workers the same
EPOLLEXCLUSIVE test_idle run_that_sleeps_is_silent the same
UDP_SEGMENT test_answers segments_are_datagrams_on_a_kernel_without_offload counts calls
splice test_streams copy_of_much_enlarges_few_pipes no copy has a pipe
splice test_streams copy_to_an_appended_file_goes_through_a_buffer the same
'

# skips_of PROGRAM  The entries of `skips` for it and $OLD_KERNEL.
skips_of() {
    for forced in $OLD_KERNEL; do
        echo "$skips" | sed -n "s/^$forced $1 //p; s/^${forced%=*} $1 //p"
    done
}
# outputs TEST...  Their outputs, each after a line with its name.
outputs() {
    for t; do
        echo "program test_$t"
        cat "$dir/log/test_$t"
    done
}
# sum_up NAME  From the outputs of a run: its line, and before it the failures, at most 40 lines.
sum_up() {
    awk -v name="$1" -v forced="$OLD_KERNEL" '
        function show(text) { if (n_shown++ < 40) print text }
        function fail(text) { f++; show(text) }
        function close_program() { if (program != "" && !ended) fail(program ": has no summary") }
        $1 == "program" && NF == 2 { close_program(); program = $2; ended = 0 }
        $1 == "FAIL" || $1 == "|" { show(program ": " $0) }
        $1 == "OLD_KERNEL" { met[$2] += $4 }
        /: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
            n = split($0, w, " "); p += w[n - 5]; f += w[n - 3]; s += w[n - 1]; ended = 1 }
        END {
            close_program()
            n = split(forced, calls, " ")
            for (i = 1; i <= n; i++) {
                sum += met[calls[i]]
                if (!met[calls[i]]) fail(calls[i] ": no test has met it")
            }
            printf "kernels %s: %d passed, %d failed, %d skipped; met %d times\n", \
                name, p, f, s, sum
        }'
}
# run NAME TEST...  With $OLD_KERNEL.
run() {
    name=$1
    shift
    for t; do
        skips_of "test_$t" > "$dir/log/test_$t.skips"
        rm -f "$dir/log/test_$t"
        echo "test_$t"
    done | xargs -P "$JOBS" -I{} sh -c "TEST_SKIPS=$dir/log/{}.skips \
        timeout 200 $dir/{} > $dir/log/{} 2>&1; :"
    outputs "$@" | sum_up "$name" | tee -a "$dir/log/sum"
}

# set_all ANSWER OTHER  Sets the answer of every call; OTHER is that of flags which may be ignored.
set_all() {
    OLD_KERNEL="EPOLLEXCLUSIVE=$2 UDP_SEGMENT=$2"
    for option in SO_PROTOCOL SO_PEERPIDFD UDP_GRO; do
        OLD_KERNEL="$OLD_KERNEL $option=ENOPROTOOPT"
    done
    for call in $together; do OLD_KERNEL="$OLD_KERNEL $call=$1"; done
    export OLD_KERNEL
}

: > "$dir/log/sum"
echo "$alone" | while read -r call rest; do
    tests=$(echo "$rest" | tr ' ' '\n' | grep '^[a-z]')
    for answer in $(echo "$rest" | tr ' ' '\n' | grep '^[A-Z]'); do
        export OLD_KERNEL="$call=$answer"
        # shellcheck disable=SC2086 # a list
        run "$call $answer" $tests
    done
done
all=$(cd "$dir" && ls test_* | sed 's/^test_//')
quick=$(echo "$all" | grep -vxF "$(echo "$slow" | tr ' ' '\n')")
set_all ENOSYS IGNORE
# shellcheck disable=SC2086
run 'all ENOSYS' $all
for answer in EPERM EINVAL; do
    set_all $answer EINVAL
    # shellcheck disable=SC2086
    run "all $answer" $quick
done
awk '/^kernels / { p += $(NF - 8); f += $(NF - 6); s += $(NF - 4); n += $2 != "all" }
    END { printf "kernels: %d answers forced, %d passed, %d failed, %d skipped\n", n, p, f, s
          exit f != 0 || n == 0 }' "$dir/log/sum"
