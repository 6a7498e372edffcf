# SPDX-License-Identifier: MIT OR 0BSD
SUMMARY = "Async runtime for C in one header"
DESCRIPTION = "Stackless tasks on all cores, timers, sockets, files, processes, cancellation"
HOMEPAGE = "@UPSTREAM@"
BUGTRACKER = "@UPSTREAM@/issues"
SECTION = "libs"
LICENSE = "MIT OR 0BSD"
LIC_FILES_CHKSUM = "file://LICENSE;md5=@LICENSE_MD5@"

SRC_URI = "@UPSTREAM@/releases/download/v${PV}/${BP}.tar.gz"
SRC_URI[sha256sum] = "@SHA256@"

inherit allarch

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    oe_runmake install DESTDIR=${D} PREFIX=${prefix}
}

FILES:${PN}-dev += "${datadir}/volt"
# All is in the -dev package, which depends on this one.
ALLOW_EMPTY:${PN} = "1"

BBCLASSEXTEND = "native nativesdk"
