#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the tests of examples/projects/ae.c over each of its backends, with sanitizers and under
# valgrind.
#
#   tests/projects/ae.sh DIRECTORY     with the programs
set -eu
bin=$1
export ASAN_OPTIONS=max_malloc_fill_size=1000000 # new memory is not zero
for form in plain asan tsan; do
    for backend in epoll pollset task guest; do
        TEST_TIMEOUT_FACTOR=5 "$bin/$form/ae_$backend" >"$bin/ae.log" 2>&1 || {
            cat "$bin/ae.log"
            exit 1
        }
        tail -n 1 "$bin/ae.log"
    done
done
# Each test is a process of its own.
for backend in pollset task guest; do
    TEST_TIMEOUT_FACTOR=20 valgrind -q --error-exitcode=9 --trace-children=yes --leak-check=full \
        "$bin/plain/ae_$backend" >"$bin/ae.log" 2>&1 || {
        cat "$bin/ae.log"
        exit 1
    }
    echo "under valgrind: $(tail -n 1 "$bin/ae.log")"
done
