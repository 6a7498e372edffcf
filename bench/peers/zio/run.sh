#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Builds Burst.scala with Maven, which fetches ZIO and the Scala compiler, and runs it.
#
#   bench/peers/zio/run.sh [default|bare [SECONDS [WARMUP]]]     default: default, 1 s after 5 s
#
# ZIO_WORKERS=N: the number of processors that the JVM assumes, and of workers that ZIO starts.
# Prints the same line and JSON as bench/rows/placement.c. Build output goes to target/ beside this
# script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

need() {
    command -v "$1" >/dev/null && return
    echo "${0##*/}: $1 is missing: install the package $2" >&2
    exit 1
}
need java default-jdk-headless
need mvn maven

classes=$here/target/classes/bench/Burst.class
if [ ! -e "$classes" ] || [ "$here/src/main/scala/Burst.scala" -nt "$classes" ] ||
    [ "$here/pom.xml" -nt "$classes" ]; then
    mvn -q -B -Dstyle.color=never -f "$here/pom.xml" compile >&2
    touch "$classes"
fi
exec java ${ZIO_WORKERS:+-XX:ActiveProcessorCount=$ZIO_WORKERS} -Xms1g -Xmx1g \
    -cp "$here/target/classes:$here/target/dependency/*" bench.Burst "$@"
