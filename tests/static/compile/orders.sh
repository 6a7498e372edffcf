#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# volt.h among the headers of libc, in every order and mode, with all warnings as errors:
#   sh tests/static/compile/orders.sh COMPILER DIRECTORY FLAGS...
# The header part must come before and after any header, alone and twice, whatever optional
# declarations of libc the file has enabled. The implementation must come first in its file, or
# anywhere with -D_GNU_SOURCE. Each order is a file in DIRECTORY; one compilation takes all files of
# a mode.
# Ends with "orders COMPILER: N compiled".
cc=$1 out=$2
shift 2
headers='arpa/inet.h assert.h complex.h ctype.h dirent.h dlfcn.h endian.h errno.h fcntl.h fenv.h
    float.h inttypes.h iso646.h limits.h locale.h math.h net/if.h netdb.h netinet/in.h
    netinet/tcp.h poll.h pthread.h pwd.h regex.h resolv.h sched.h search.h semaphore.h setjmp.h
    signal.h spawn.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h
    sys/epoll.h sys/eventfd.h sys/file.h sys/ioctl.h sys/mman.h sys/param.h sys/queue.h
    sys/resource.h sys/select.h sys/signalfd.h sys/socket.h sys/stat.h sys/syscall.h
    sys/sysmacros.h sys/time.h sys/timerfd.h sys/types.h sys/uio.h sys/un.h sys/wait.h syslog.h
    tgmath.h time.h ucontext.h unistd.h utime.h wchar.h'
case $cc in
*++) suffix=cpp gnu=-std=gnu++17 strict=-std=c++11 ;;
*) suffix=c gnu=-std=gnu11 strict=-std=c99 ;;
esac
files=0 failed=0
rm -rf "$out" && mkdir -p "$out" || exit 1

# put NAME LINE...: a file that includes each LINE that is not a directive itself
put() {
    name=$1
    shift
    for line; do
        case $line in '#'*) echo "$line" ;; *) echo "#include <$line>" ;; esac
    done >"$out/$name.$suffix"
}
# mode NAME FLAGS...: compiles the files that were put, and removes them
mode() {
    name=$1
    shift
    n=$(ls "$out" | wc -l)
    # shellcheck disable=SC2086
    if ! "$cc" $flags "$@" -fsyntax-only "$out"/*."$suffix"; then
        failed=1
        echo "orders $cc: $name failed"
    fi
    files=$((files + n))
    rm -f "$out"/*
}
put_orders() { # of the header part
    put alone volt.h
    put twice volt.h volt.h
    # shellcheck disable=SC2086
    put behind_all $headers volt.h
    # shellcheck disable=SC2086
    put before_all volt.h $headers
}
put_behind_each() { # lines...
    for h in $headers; do put "behind_$(echo "$h" | tr / _)" "$h" "$@"; done
}

flags=$*
put_orders
put_behind_each volt.h
mode 'header, as the compiler comes' "$gnu"
put_orders
mode 'header, _GNU_SOURCE' "$gnu" -D_GNU_SOURCE
put_orders
mode 'header, strict POSIX' "$strict" -pedantic -U_GNU_SOURCE -D_POSIX_C_SOURCE=200809L

put first '#define VOLT_IMPLEMENTATION' volt.h
put first_then_again '#define VOLT_IMPLEMENTATION' volt.h '#undef VOLT_IMPLEMENTATION' volt.h
# shellcheck disable=SC2086
put before_all '#define VOLT_IMPLEMENTATION' volt.h $headers
mode 'implementation, first in its file' "$gnu"

put twice '#define VOLT_IMPLEMENTATION' volt.h volt.h
put behind_header volt.h '#define VOLT_IMPLEMENTATION' volt.h
# shellcheck disable=SC2086
put between volt.h $headers '#define VOLT_IMPLEMENTATION' volt.h $headers
# the headers are the same for all compilers: one is enough
case $cc in gcc*) put_behind_each '#define VOLT_IMPLEMENTATION' volt.h ;; esac
mode 'implementation, anywhere' "$gnu" -D_GNU_SOURCE

[ $failed -eq 0 ] && echo "orders $cc: $files compiled"
