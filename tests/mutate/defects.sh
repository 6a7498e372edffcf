#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Deliberate defects, each with the test that must notice it; `make defects`, ONE=name.
#   sh tests/mutate/defects.sh build/defects [name...]
# Each entry of defects.txt is applied to a copy of volt.h, its program is compiled with it, and the
# test that it names must fail there, in one of several tries, as some defects show only by chance.
# With the unchanged volt.h the same test must pass. Last line: "defects: N passed, N failed".
# Environment: CC; JOBS, the number of parallel jobs; TRIES; APPLY=1: only checks that each entry
# fits volt.h and names a test, which takes a second.
set -u
out=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
export CC="${CC:-cc}" TRIES="${TRIES:-5}"
rm -rf "$out"
mkdir -p "$out"

# defects.txt -> one directory each, with the changed volt.h, the program and the test.
awk -v out="$out" -v only=" $* " -v applies_only="${APPLY:-}" "$(cat "$here/../lib/edits.awk")"'
function finish() {
    if (!is_chosen()) return
    put("test", program " " test)
    put("flags", flags)
    apply()
}
/^defect / { finish(); begin(); name = $2; program = test = flags = "" }
/^in / { program = $2; test = $3 }
/^with / { flags = substr($0, 6) }
' "$here/../../volt.h" "$here/defects.txt"

# source_of PROGRAM  test_chan is made from tests/api/chan.c.
source_of() { ls "$here"/../unit/"${1#test_}".c "$here"/../api/"${1#test_}".c \
    "$here"/../exhaustive/"${1#test_}".c "$here"/../stress/"${1#test_}".c \
    "$here"/../regress/"${1#test_}".c 2>/dev/null; }
# is_there PROGRAM TEST  By its name in the source; tests made by a macro are found when they run.
is_there() {
    if [ "$1" = fault ]; then grep -q "[(]$2, " "$here/../fault/fault.c"
    else
        # a name may be composed by a macro: of its argument and one of these ends
        file=$(source_of "$1")
        for end in '' $(sed -n 's/.*##\(_[a-z_]*\)).*/\1/p' "$file"); do
            grep -qE "^[A-Z_0-9]+\(${2%"$end"}\b" "$file" && return
        done
        return 1
    fi
}
if [ -n "${APPLY:-}" ]; then
    passed=0 failed=0
    for d in "$out"/*/; do
        read -r program test <"$d/test"
        why=
        [ ! -e "$d/broken" ] || why=$(cat "$d/broken")
        is_there "$program" "$test" || why="no test $test in $program"
        passed=$((passed + 1))
        [ -z "$why" ] || { failed=$((failed + 1)); echo "FAIL $(basename "$d") $why"; }
    done
    echo "defects: $((passed - failed)) fit, $failed do not"
    [ "$passed" -gt 0 ] && [ "$failed" = 0 ]
    exit
fi

# build.sh DIR PROGRAM  With DIR/volt.h. run.sh DIR PROGRAM TEST  0: it has passed.
cat >"$out/build.sh" <<BUILD
mkdir -p "\$1/tests" || exit 1
if [ "\$2" = fault ]; then cp -R "$here/../fault" "\$1/tests" && file=fault/fault.c
else
    file=\${2#test_}.c
    for d in unit api exhaustive stress regress; do
        [ ! -e "$here/../\$d/\$file" ] || cp "$here/../\$d/\$file" "\$1/tests"
    done
fi || exit 1
$CC -std=gnu11 -gdwarf-4 -O1 -w -pthread \$(cat "\$1/flags") \
    -I"\$1" -I"$here/../lib" -I"$here/../.." "\$1/tests/\$file" -o "\$1/run" >"\$1/log" 2>&1
rc=\$?
rm -rf "\$1/tests"
exit \$rc
BUILD
cat >"$out/run.sh" <<'RUN'
if [ "$2" = fault ]; then set -- "$1" --scenario "$3"; else set -- "$1" "$3"; fi
dir=$1
shift
TEST_TIMEOUT_FACTOR=0.5 timeout 120 "$dir/run" "$@" >"$dir/log" 2>&1
RUN
# One defect: prints its line; ends with 0 if it is noticed.
cat >"$out/one.sh" <<'ONE'
d=$1 out=$2
name=${d##*/}
read -r program test <"$d/test"
say() { printf '%-4s %-44s %s\n' "$1" "$name" "$2"; }
[ ! -e "$d/broken" ] || { say FAIL "$(cat "$d/broken")"; exit 1; }
sh "$out/run.sh" "$out/as-it-is/$program" "$program" "$test" ||
    { say FAIL "$program $test: fails without the defect"; exit 1; }
sh "$out/build.sh" "$d" "$program" || { say FAIL 'does not compile'; exit 1; }
try=1
while sh "$out/run.sh" "$d" "$program" "$test"; do
    [ "$try" -lt "$TRIES" ] ||
        { rm -f "$d/run"; say FAIL "$program $test does not notice it"; exit 1; }
    try=$((try + 1))
done
rm -f "$d/run"
case $program in
fault) why=$(grep -m 1 -iE 'fail|leak|left|hang' "$d/log") ;;
*) why=$(sed -n "s/^  FAIL  $test  *[0-9.]* s  *//p" "$d/log")
    more=$(sed -n 's/^        | \(.*:[0-9]*: \)*//p' "$d/log" | tail -n 1)
    [ -z "$more" ] || why=$more ;;
esac
[ -n "$why" ] || { say FAIL "no verdict of $program $test"; exit 1; }
say ok "$test: $(echo "$why" | cut -c 1-90)$([ "$try" = 1 ] || echo ", try $try")"
ONE

ls -d "$out"/*/ | sed 's|/$||' >"$out/list"
while read -r d; do cut -d ' ' -f 1 "$d/test"; done <"$out/list" | sort -u |
    while read -r program; do
        mkdir -p "$out/as-it-is/$program"
        cp "$here/../../volt.h" "$out/as-it-is/$program"
        : >"$out/as-it-is/$program/flags"
        echo "$program"
    done | xargs -P "${JOBS:-2}" -I{} sh "$out/build.sh" "$out/as-it-is/{}" {}
xargs -P "${JOBS:-2}" -I{} sh "$out/one.sh" {} "$out" <"$out/list" >"$out/all"
sort -k 2 "$out/all" | cut -c 1-200
passed=$(grep -c '^ok' "$out/all") failed=$(grep -c '^FAIL' "$out/all")
echo "defects: $passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
