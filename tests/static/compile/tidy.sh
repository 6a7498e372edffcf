#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# clang-tidy on the implementation: its own checks, and the paths of clang's analyzer.
#
#   tests/static/compile/tidy.sh DIRECTORY CHECKS [DEFINITION...]
#
# The analyzer follows only the functions of the main file, unless it is told otherwise, and the
# functions of volt.h are those of a header. So a defect in a header of another name is tried
# first, and the script fails if it is not found.
set -eu
dir=$1 checks=$2
shift 2
mkdir -p "$dir"
# tidy FILE [DEFINITION...]
tidy() {
    file=$1
    shift
    clang-tidy --quiet --warnings-as-errors='*' --header-filter='volt\.h' --checks="$checks" \
        --extra-arg=-Xclang --extra-arg=-analyzer-opt-analyze-headers "$file" -- \
        -std=gnu11 -I. "$@"
}

cat > "$dir/planted_volt.h" <<'EOF'
static inline int planted(const int *p, int n) {
    if (!p) n = 1;
    return n == 1 ? *p : n;
}
EOF
cat > "$dir/planted.c" <<'EOF'
#include "planted_volt.h"
int user(const int *p);
int user(const int *p) { return planted(p, 2); }
EOF
if tidy "$dir/planted.c" > "$dir/planted.log" 2>&1 ||
    ! grep -q 'planted_volt\.h:3.*core\.NullDereference' "$dir/planted.log"; then
    cat "$dir/planted.log"
    echo "${0##*/}: the analyzer has not found the defect of planted_volt.h"
    exit 1
fi
printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' > "$dir/impl.c"
tidy "$dir/impl.c" "$@"
