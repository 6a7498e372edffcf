#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# A trace of the demo: the echo server, built with VOLT_TRACE=1, under the load of 20 connections
# for a second. Its last events are those under load.
#
#   bench/tools/trace.sh ECHO_SERVER LOAD FILE     FILE: the trace, as Chrome's JSON
set -eu
. "$(dirname "$0")/server.sh"

start "$1" 0 0 20 "$3"
"$2" --port "$port" --conns 20 --seconds 1 --size 64 >/dev/null
stop
