#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Programs of several units that contain volt.h: builds them below DIRECTORY and runs them.
#   sh tests/static/compile/programs.sh DIRECTORY FLAGS...
# Ends with "programs: N passed, N failed".
out=$1
shift
warnings=$*
dir=$(dirname "$0")
compilers='gcc g++ clang clang++'
passed=0 failed=0
rm -rf "$out" && mkdir -p "$out" || exit 1

language() { case $1 in *++) echo '-x c++ -std=gnu++17' ;; *) echo '-x c -std=gnu11' ;; esac; }
# object COMPILER NAME FLAGS...: $out/NAME.o of unit.c
object() {
    compiler=$1 object=$2
    shift 2
    # shellcheck disable=SC2046,SC2086
    "$compiler" $(language "$compiler") -O0 $warnings -pthread "$@" \
        -c "$dir/unit.c" -o "$out/$object.o" ||
        failed=$((failed + 1))
}
# verdict NAME STATUS
verdict() {
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "programs: $1 failed ($2)"
    fi
}
link() { # COMPILER NAME FILE...
    linker=$1 program=$2
    shift 2
    "$linker" -pthread "$@" -o "$out/$program"
}
# runs_linked NAME FILE...: g++ links, as some files may be C++
runs_linked() {
    link g++ "$@" && timeout 60 "$out/$1"
    verdict "$1" $?
}
# No name of volt.h in FILE may be visible outside it.
keeps_to_itself() { # FILE
    names=$(nm -g --defined-only "$out/$1") && ! echo "$names" | grep ' volt_'
    verdict "names in $1" $?
}

# ---- two units of one program, one with the implementation: any compiler with any other
for cc in $compilers; do
    object "$cc" "whole-$cc" -DUNIT=first -DVOLT_IMPLEMENTATION
    object "$cc" "user-$cc" -DUNIT=second
done
# shellcheck disable=SC2086
gcc -O1 $warnings -pthread -c "$dir/main.c" -o "$out/main.o" || exit 1
for cc in $compilers; do
    for user in $compilers; do
        runs_linked "two-$cc-$user" "$out/main.o" "$out/whole-$cc.o" "$out/user-$user.o"
    done
done

# ---- private to each of two units
for cc in $compilers; do
    object "$cc" "first-$cc" -DUNIT=first -DVOLT_STATIC -DVOLT_IMPLEMENTATION
    object "$cc" "second-$cc" -DUNIT=second -DVOLT_STATIC -DVOLT_IMPLEMENTATION
    keeps_to_itself "first-$cc.o"
    runs_linked "static-$cc" "$out/main.o" "$out/first-$cc.o" "$out/second-$cc.o"
done

# ---- files of one program that disagree about VOLT_DEBUG: the linker must say so
for debug in 0 1; do
    object gcc "whole-debug-$debug" -DUNIT=first -DVOLT_IMPLEMENTATION -DVOLT_DEBUG=$debug
    object gcc "user-debug-$debug" -DUNIT=second -DVOLT_DEBUG=$debug
done
for whole in 0 1; do
    for user in 0 1; do
        link gcc debug "$out/main.o" "$out/whole-debug-$whole.o" "$out/user-debug-$user.o" \
            >"$out/said" 2>&1
        linked=$?
        if [ $whole = $user ]; then
            verdict "link with VOLT_DEBUG $whole and $user" $linked
        else
            grep -q "undefined reference to .volt__bad_resume_with_VOLT_DEBUG_$user" "$out/said"
            verdict "link with VOLT_DEBUG $whole and $user" $?
        fi
    done
done

# ---- copies in shared objects with hidden visibility, beside the copy of the program
object gcc host-unit -DUNIT=third -DVOLT_IMPLEMENTATION -DVOLT_DEBUG=0
# shellcheck disable=SC2086
gcc -O1 $warnings -pthread -c "$dir/host.c" -o "$out/host.o" || exit 1
link gcc host -rdynamic "$out/host.o" "$out/host-unit.o" -ldl
objects=
for cc in $compilers; do
    object "$cc" "plugin-$cc" -DUNIT=plugin -DVOLT_IMPLEMENTATION -fPIC -fvisibility=hidden
    link "$cc" "plugin-$cc.so" -shared -Wl,-z,defs "$out/plugin-$cc.o"
    keeps_to_itself "plugin-$cc.so"
    objects="$objects $out/plugin-$cc.so"
done
# shellcheck disable=SC2086
timeout 60 "$out/host" $objects
verdict 'shared objects' $?

echo "programs: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
