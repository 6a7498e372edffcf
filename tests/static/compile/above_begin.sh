#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks the reports of tests/static/above_begin.sh on above_begin.c beside this file: the lines that say
# `reported`, and no others. The file must compile without a warning.
#   CC=gcc sh tests/static/compile/above_begin.sh
here=$(dirname "$0")
file=$here/above_begin.c
warn="-Wall -Wextra -Werror -Wno-unused-function"
# shellcheck disable=SC2086 # lists of words
${CC:-cc} -std=gnu11 $warn -I"$here/../../.." -fsyntax-only "$file" || exit 1
want=$(sed -n '/^#include/,$ { /reported/ = }' "$file")
got=$(sh "$here/../above_begin.sh" "$file" | sed -n 's/^[^:]*:\([0-9]*\): .*/\1/p')
[ "$got" = "$want" ] && exit
printf '%s: reported are lines\n%s\nexpected are\n%s\n' "$file" "$got" "$want"
exit 1
