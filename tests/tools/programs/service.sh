#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs examples/programs/service.c under a stand-in for its manager, see service.py.
#
#   tests/tools/programs/service.sh DIRECTORY     with the program
#
# Prints its checks. Needs python3, curl, valgrind and a C compiler. The caller sets a time limit.
#
# The metrics are always parsed by service.py itself. They are also parsed by the prometheus_client
# of PyPI where a python3 has it: build/openmetrics/bin/python3 (make build/openmetrics), or the one
# of the system (Debian: python3-prometheus-client); and by promtool (Debian: prometheus).
set -eu
bin=$1
here=$(dirname "$0")
. "$here/peers.sh"

"${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -shared -fPIC "$here/hang.c" -o "$work/hang.so"
"${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -shared -fPIC "$here/../accept_fails.c" \
    -o "$work/accept_fails.so"
"${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -I. -pthread "$here/late_line.c" -o "$work/late_line"
"$work/late_line" 2>"$work/lines" && has "$work/lines" event=late ||
    fail "the line is lost: $(cat "$work/lines")"
claim 'a line that is on its way while the log ends is written'
parser=
for python in build/openmetrics/bin/python3 python3 /usr/bin/python3; do
    ! "$python" -c 'import prometheus_client.openmetrics.parser' 2>/dev/null || parser=$python
    [ -z "$parser" ] || break
done
PARSER=$parser python3 "$here/service.py" "$bin/service" "$work" || fail 'a check has failed'

# ---- the files of the managers

sh -n examples/programs/service/volt-echo.init || fail 'the init script is no shell script'
# procd's functions, as far as they are called
cat >"$work/procd" <<'END'
procd_open_instance() { is_open=1; }
procd_set_param() { [ "$is_open" = 1 ] && echo "$1=$2"; }
procd_close_instance() { is_open=0; }
procd_add_reload_trigger() { echo "trigger=$1"; }
. examples/programs/service/volt-echo.init
start_service
service_triggers
echo "procd=$USE_PROCD"
END
sh -eu "$work/procd" >"$work/params"
for want in command=/usr/bin/volt-echo respawn=3600 reload_signal=HUP procd=1 trigger=volt-echo; do
    has "$work/params" "^$want$" || fail "the init script gives no $want: $(cat "$work/params")"
done
claim 'the init script gives procd a command, a respawn and a reload'
if command -v systemd-analyze >/dev/null; then
    mkdir "$work/units"
    cp examples/programs/service/volt-echo.socket "$work/units"
    sed "s|/usr/bin/volt-echo|$(realpath "$bin/service")|" \
        examples/programs/service/volt-echo.service >"$work/units/volt-echo.service"
    systemd-analyze verify --man=no "$work/units/volt-echo.service" >"$work/verify" 2>&1 ||
        fail "the unit is refused: $(cat "$work/verify")"
    ! has "$work/verify" volt-echo || fail "the unit is not clean: $(cat "$work/verify")"
    claim 'systemd-analyze accepts the unit and its socket'
fi
