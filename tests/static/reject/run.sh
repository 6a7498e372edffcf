#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Each program of this directory contains one misuse of volt.h that a compiler can detect. With one
# compiler, each must be rejected, with the diagnostic that the program names; and must compile
# without a warning when FIXED is defined, which replaces the wrong form by the right one.
#   sh tests/static/reject/run.sh COMPILER [FILE...]
# The first lines of a program name the diagnostics, as extended regular expressions:
#   // gcc: ...        for gcc and, if there is no line of its own, for g++
#   // clang: ...      for clang and, if there is no line of its own, for clang++
#   // clang: silent   this compiler does not detect it; if it learns to, the line must be changed
#   // c: c2x          a standard other than gnu11;  .cpp: for g++ and clang++ alone
# Ends with "reject COMPILER: N of N", and the number of programs on which it is silent, as
# expected.
export LC_ALL=C
cc=$1
shift
dir=$(dirname "$0")
[ $# -gt 0 ] || set -- "$dir"/*.c "$dir"/*.cpp
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The warnings are those that the README recommends.
flags='-O0 -Wall -Wextra -Werror'
case $cc in
*clang++*) name=clang++ same=clang ;;
*clang*) name=clang same=clang ;;
*g++*) name=g++ same=gcc ;;
*) name=gcc same=gcc ;;
esac
case $name in
*++) flags="-x c++ -std=gnu++17 $flags" ;;
gcc) flags="-x c $flags -Wjump-misses-init" ;;
clang) flags="-x c $flags -Wconditional-uninitialized" ;;
esac

field() { sed -n "s|^// $1: *||p" "$file"; }
compile() { # flags...; the compiler's messages go to $work/said
    # shellcheck disable=SC2086
    "$cc" $flags "$@" -c "$file" -o "$work/o" >"$work/said" 2>&1
}
diagnostic() { # that is expected of $file
    expected=$(field "$name")
    [ -n "$expected" ] || expected=$(field "$same")
    echo "$expected"
}
# Prints the error of $file, or nothing.
verdict() {
    expected=$(diagnostic)
    standard=$(field c)
    case $name in *++) standard= ;; *) standard=-std=${standard:-gnu11} ;; esac
    if [ -z "$expected" ]; then
        echo "no line \"// $name:\""
    elif ! compile $standard -DFIXED; then
        echo 'the right form does not compile'
    elif compile $standard; then
        [ "$expected" = silent ] || echo 'the misuse compiles'
    elif [ "$expected" = silent ]; then
        echo 'is no longer silent'
    elif ! grep -Eq "(error|in expansion of macro):? .*($expected)" "$work/said"; then
        echo "says something else than: $expected"
    fi
}

good=0 bad=0 silent=0
for file; do
    case $name:$file in gcc:*.cpp | clang:*.cpp) continue ;; esac
    wrong=$(verdict)
    if [ -n "$wrong" ]; then
        bad=$((bad + 1))
        echo "$file: $cc: $wrong"
        head -n 20 "$work/said"
    elif [ "$(diagnostic)" = silent ]; then
        silent=$((silent + 1))
    else
        good=$((good + 1))
    fi
done
echo "reject $cc: $good of $((good + bad)), silent on $silent"
[ $((good + silent)) -gt 0 ] && [ "$bad" -eq 0 ]
