#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Deliberate defects that the model checker must catch.
#   sh tests/model/mutants.sh build-dir compiler [name...]
# Each entry of the files mutants*.txt is applied to a copy of volt.h, the scenario file is compiled
# against it, and the scenario it names must fail. build-dir holds the checker's objects (`make
# model-mutants` builds them). An entry marked `survives` must not be caught, and gives the reason.
# Last line: "mutants: N passed, N failed". Environment: JOBS, the number of parallel jobs; APPLY=1:
# only checks that each entry fits volt.h and names a scenario, which takes seconds.
set -u
dir=$1 cc=$2
shift 2
here=$(dirname "$0")
out=$dir/mutants
rm -rf "$out"
mkdir -p "$out"

# mutants.txt -> one directory each, with the changed volt.h, the scenario and, if any, the reason.
awk -v out="$out" -v only=" $* " -v applies_only="${APPLY:-}" "$(cat "$here/../lib/edits.awk")"'
function finish() {
    if (!is_chosen()) return
    put("scenario", scenario)
    if (reason != "") put("survives", reason)
    apply()
}
/^mutant / { finish(); begin(); name = $2; scenario = $3; reason = "" }
/^survives / { reason = substr($0, 10) }
' "$here/../../volt.h" "$here"/mutants*.txt

if [ -n "${APPLY:-}" ]; then
    passed=0 failed=0
    for m in "$out"/*/; do
        name=$(basename "$m") scenario=$(cat "$m/scenario") why=
        [ ! -e "$m/broken" ] || why=$(cat "$m/broken")
        grep -q "SCENARIO($scenario[,)]" "$here"/model_*.c || why="no scenario $scenario"
        passed=$((passed + 1))
        [ -z "$why" ] || { failed=$((failed + 1)); echo "FAIL $name $why"; }
    done
    echo "mutants: $((passed - failed)) fit, $failed do not"
    [ "$passed" -gt 0 ] && [ "$failed" = 0 ]
    exit
fi

# One mutant: prints its line; ends with 0 if the result is as expected.
cat > "$out/one.sh" <<'ONE'
m=$1 here=$2 dir=$3 cc=$4
name=${m##*/} scenario=$(cat "$m/scenario")
say() { printf '%-4s %-34s %s\n' "$1" "$name" "$2"; }
[ -e "$m/broken" ] && { say FAIL "$(cat "$m/broken")"; exit 1; }
file=$(grep -l "SCENARIO($scenario[,)]" "$here"/model_*.c | head -n 1)
[ -n "$file" ] || { say FAIL "no scenario $scenario"; exit 1; }
tsan=; [ "$cc" = gcc ] && tsan=-Wno-tsan
build() {
    "$cc" -std=gnu11 -w -gdwarf-4 -I"$m" -I"$here" -fno-pie -O0 -fsanitize=thread -fno-builtin \
        $tsan -DVOLT_DEBUG="$1" -c "$file" -o "$m/scenario.o" > "$m/log" 2>&1 &&
    objcopy --rename-section .data=model_data --rename-section .bss=model_bss,alloc \
        --redefine-sym memset=vmc_memset --redefine-sym memcpy=vmc_memcpy \
        --redefine-sym memmove=vmc_memmove "$m/scenario.o" &&
    "$cc" -no-pie "$m/scenario.o" $(ls "$dir"/*.part.o | grep -v litmus_) -o "$m/run" \
        >> "$m/log" 2>&1
}
# A defect that the form with assertions hides may be caught in the shipped form: there no assertion
# acquires in place of the code.
for debug in 1 0; do
    build $debug || { say FAIL 'does not compile'; exit 1; }
    timeout 300 "$m/run" -q -l "$scenario" > "$m/log" 2>&1
    rc=$?
    rm -f "$m/run" "$m/scenario.o"
    [ $rc = 0 ] || break
done
why=$(sed -n 's/^  //p' "$m/log" | head -n 1)
n=$(sed -n 's/^FAIL.* \([0-9]*\) executions.*/\1/p' "$m/log")
if [ -e "$m/survives" ]; then
    [ $rc = 0 ] && { say ok "survives: $(cat "$m/survives")"; exit 0; }
    say FAIL "is caught after all: $why"; exit 1
fi
[ $rc = 0 ] && { say FAIL "$scenario does not catch it"; exit 1; }
[ -n "$why" ] || { say FAIL "no verdict, status $rc"; exit 1; }
say ok "$scenario, $n executions: $why"
ONE

ls -d "$out"/*/ | sed 's|/$||' |
    xargs -P "${JOBS:-2}" -I{} sh "$out/one.sh" {} "$here" "$dir" "$cc" > "$out/all"
sort -k 2 "$out/all" | cut -c 1-160
passed=$(grep -c '^ok' "$out/all") failed=$(grep -c '^FAIL' "$out/all")
echo "mutants: $passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
