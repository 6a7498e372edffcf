#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs a program of tests/ in a time namespace, where CLOCK_MONOTONIC shows another time. Called by
# `make clocks`; needs Linux 5.6 with CONFIG_TIME_NS and unshare of util-linux 2.36.
#   sh tests/platform/clocks.sh TIME PROGRAM CLOCK_NOW     CLOCK_NOW: tests/platform/clock_now.c,
#   built
# TIME, as below: the clock has passed that time when the program begins. With `past_...` it passes
# it while the program runs; the program is then repeated until that has happened.
now=$3
case $1 in # in milliseconds
    12_days)        time=1036800000 ;;
    24.8_days)      time=2147484000 ;;   # 2^31 ms and a bit
    49.7_days)      time=4294968000 ;;   # 2^32 ms and a bit
    10_years)       time=315360000000 ;;
    past_12.4_days) time=1073741824 ;;   # 2^30 ms
    past_24.8_days) time=2147483648 ;;   # 2^31 ms
    past_49.7_days) time=4294967296 ;;   # 2^32 ms
    past_8.7_years) time=274877906944 ;; # 2^38 ms
    can_enter)      time=1000000000 ;;
    *) echo "clocks.sh: no time $1"; exit 2 ;;
esac

# Offsets are whole seconds: the clock begins less than a second behind `begin`.
case $1 in
    past_*) begin=$((time - 2000)) count=$time ;;
    *)      begin=$time count=$((time + 2500)) ;;
esac
offset=$(((begin - $("$now") + 999) / 1000))
export CLOCK_FROM=$((begin / 1000)) CLOCK_ACROSS=$count

user=
[ "$(id -u)" = 0 ] || user='--user --map-root-user'
enter() { # shellcheck disable=SC2086 # words
    timeout 300 unshare $user --time --fork --monotonic=$offset --boottime=$offset "$@"
}

case $1 in
    can_enter)
        enter true && exit
        echo 'clocks: no time namespace: needs Linux 5.6 with CONFIG_TIME_NS, and as root or with' \
            'user namespaces; unshare of the Debian package util-linux, 2.36'
        exit 1 ;;
    past_*) # shellcheck disable=SC2016 # of the inner shell
        enter sh -c 'while "$0" && [ "$("$1")" -le "$2" ]; do :; done; [ "$("$1")" -gt "$2" ]' \
            "$2" "$now" $count ||
            echo "$2: 0 passed, 1 failed, 0 skipped" ;; # it failed, or the clock missed its time
    *) enter "$2" ;;
esac
