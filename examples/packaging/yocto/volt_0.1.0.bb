# SPDX-License-Identifier: MIT OR 0BSD
# Yocto recipe of volt.h; see ../README.md.
SUMMARY = "Async runtime for C in one header"
DESCRIPTION = "Stackless tasks on all cores, timers, sockets and cancellation"
SECTION = "libs"
LICENSE = "MIT | 0BSD"
LIC_FILES_CHKSUM = "file://LICENSE;md5=6a0c89d1341d60c3088411407223cee1"

SRC_URI = "file://src"
# Releases before 5.1 have no UNPACKDIR.
S = "${@d.getVar('UNPACKDIR') or d.getVar('WORKDIR')}/src"

inherit allarch

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    oe_runmake install DESTDIR=${D} PREFIX=${prefix}
}

# All is in the -dev package, which depends on this one.
ALLOW_EMPTY:${PN} = "1"

BBCLASSEXTEND = "native nativesdk"
