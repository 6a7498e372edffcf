#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/gdb/volt.py on a program with known tasks (tests/tools/gdb/waits.c): stopped, and as
# a core file, in several builds; and on programs that it must refuse. `make gdb-test` runs it:
#   sh tests/tools/gdb.sh DIRECTORY     for programs, core files and logs
# Prints a line for each, the log of failures (tests/tools/gdb/check.py compares), and the sum.
set -u
export LC_ALL=C
dir=$1
rm -rf "$dir"
mkdir -p "$dir"
passed=0 failed=0

# build NAME COMPILER...  Builds the program.
build() {
    program=$dir/$1
    shift
    "$@" -std=gnu11 -Wall -Wextra -Werror -pthread tests/tools/gdb/waits.c -o "$program" || exit 1
}

# run_gdb LOG ARGUMENT...  Without startup files, and without questions.
run_gdb() {
    log=$1
    shift
    timeout 60 gdb --batch -nx -iex 'set auto-load off' -ex 'set pagination off' "$@" \
        >"$log" 2>&1
}

# says NAME TEXT...  The last log has a line with each of these.
says() {
    what=$1
    shift
    for text; do
        if ! grep -Fq -- "$text" "$log"; then
            failed=$((failed + 1))
            echo "gdb $what: failed, it does not say '$text':"
            tail -n 60 "$log" | cut -c 1-200
            return
        fi
    done
    passed=$((passed + 1))
    echo "gdb $what: passed"
}

# look NAME COMPILER...  Live: afterwards the program continues undisturbed. Then as a core file.
look() {
    name=$1
    build "$@"
    case " $* " in *' -g3 -I'*) macros=True ;; *) macros=False ;; esac
    set -- -ex "python want, has_macros = '$program.want', $macros" \
        -ex 'source examples/gdb/volt.py' -ex 'source tests/tools/gdb/check.py'
    run_gdb "$program.live.log" -ex 'break ready' -ex "run $program.want" "$@" \
        -ex "generate-core-file $program.core" -ex continue "$program"
    says "$name, live" '38 tasks, 0 failures' 'exited normally'
    run_gdb "$program.core.log" "$@" "$program" "$program.core"
    says "$name, core" '38 tasks, 0 failures'
}

# refuse NAME TEXT COMPILER...  The script must print the reason instead of tables.
refuse() {
    name=$1 text=$2
    shift 2
    build "$name" "$@"
    run_gdb "$program.log" -ex 'break ready' -ex "run $program.want" \
        -ex 'source examples/gdb/volt.py' -ex 'volt tasks' "$program"
    says "$name" "$text"
    if grep -q '^TASK' "$log"; then
        failed=$((failed + 1))
        echo "gdb $name: failed, it shows tasks"
    fi
}

# other NAME SED_COMMAND TEXT  A volt.h whose layout the script does not know.
other() {
    mkdir -p "$dir/$1-h"
    sed "$2" volt.h >"$dir/$1-h/volt.h"
    ! cmp -s volt.h "$dir/$1-h/volt.h" || { echo "$1: nothing changed"; exit 1; }
    refuse "$1" "$3" gcc -O1 -g -I"$dir/$1-h"
}

look gcc-O2 gcc -O2 -g -I.
look gcc-O2-ndebug gcc -O2 -g -DNDEBUG -I.
look gcc-O3-lto-ndebug gcc -O3 -flto -flto-partition=none -g -DNDEBUG -I.
look gcc-O0-macros gcc -O0 -g3 -I.
look gcc-O1-own-macros gcc -O1 -g3 -DVOLT_TICK_NS=2000000 -DVOLT_RING_DISTANCE_BITS=11 -I.
look gcc-O2-trace gcc -O2 -g -DVOLT_TRACE=1 -I.
look clang-O2 clang -O2 -g -I.

refuse no-debug-information 'no volt__tls in the debug information' gcc -O1 -I.
refuse other-tick ': VOLT_TICK_NS: the program' gcc -O1 -g -DVOLT_TICK_NS=2000000 -I.
refuse other-finer-tick ': VOLT_TICK_NS: the program' gcc -O1 -g -DVOLT_TICK_NS=20000 -I.
other other-version 's/^\(#define VOLT_VERSION\) 200/\1 201/' 'VOLT_VERSION is {201}, not 200'
other other-field 's/\<wait_ms\>/wait_tick/g' 'volt__task has no wait_ms'
other other-flag 's/^\(#define VOLT__REF ((uintptr_t)\)64)/\132)/' 'tasks found, '
other other-slots 's/^\(#define VOLT__SLAB_HEAD\) 128/\1 192/' 'another number of slots'

echo "gdb: $passed passed, $failed failed"
[ "$failed" = 0 ]
