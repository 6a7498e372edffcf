#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# What a stranger does first: installs volt.h, or copies it, and builds README's first program with
# it: by pkg-config, by README's CMake and Meson files, and by the recipes of examples/packaging.
# `make check` runs it:
#   sh tests/install.sh DIRECTORY     for the files, made anew
# Prints what worked; stops at what did not, and shows its output. The macros of Buildroot, Yocto
# and OpenWrt are stand-ins: they show that a recipe's own lines do what they are meant to.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$1"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
unset MAKEFLAGS MFLAGS MAKELEVEL PREFIX DESTDIR PKG_CONFIG_PATH
export CC="${CC:-cc}"

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# quiet COMMAND...  Shows its output only if it fails.
quiet() {
    "$@" >"$dir/log" 2>&1 || {
        tail -n 40 "$dir/log"
        fail "$*"
    }
}

# snippet LANGUAGE N  The n-th block of that language in README.md.
snippet() {
    awk -v begin="\`\`\`$1" -v want="$2" '
        /^```/ && inside { exit }
        inside { print }
        $0 == begin && ++n == want { inside = 1 }
    ' "$root/README.md" | grep . || fail "README.md: no block $2 of $1"
}

# installed TREE PREFIX  There are the two files, and no others.
installed() {
    (cd "$1" && find . -type f | sort) >"$dir/got"
    printf '%s\n' "./${2#/}/include/volt.h" "./${2#/}/share/pkgconfig/volt.pc" |
        sed 's|^\.//*|./|' >"$dir/want"
    diff "$dir/want" "$dir/got" || fail "$1: other files than these were installed"
    cmp "$root/volt.h" "$1/$2/include/volt.h"
}

# project NAME  A directory with README's first program, which exits with 0.
project() {
    mkdir "$dir/$1"
    snippet c 1 >"$dir/$1/main.c"
    cd "$dir/$1"
}

# by_pkg_config NAME OPTION...  Compiles a project as pkg-config tells, and runs it.
by_pkg_config() {
    project "$1"
    shift
    version=$(pkg-config --modversion volt)
    # shellcheck disable=SC2046 # a list of flags
    quiet "$CC" -Wall -Wextra -Werror main.c -o app $(pkg-config "$@" --cflags --libs volt)
    quiet ./app
}

with_make() {
    quiet make -C "$root" install PREFIX="$dir/prefix"
    installed "$dir/prefix" ''
    PKG_CONFIG_LIBDIR=$dir/prefix/share/pkgconfig by_pkg_config by-prefix
    echo "make install PREFIX=...: pkg-config finds volt $version"

    quiet make -C "$root" install DESTDIR="$dir/dest" PREFIX=/usr
    installed "$dir/dest" /usr
    ! grep -r "$dir" "$dir/dest" || fail 'DESTDIR stands in an installed file'
    in_sysroot "$dir/dest" by-destdir
    echo 'make install DESTDIR=...: pkg-config finds it below a sysroot'
}

# in_sysroot TREE NAME  As Buildroot's and Yocto's pkg-config see a tree.
in_sysroot() {
    PKG_CONFIG_SYSROOT_DIR=$1 PKG_CONFIG_LIBDIR=$1/usr/share/pkgconfig by_pkg_config "$2"
}

# The first block of each language has volt.h in the tree, the second one finds the installed one.
with_cmake() {
    for n in 1 2; do
        project cmake-$n
        snippet cmake $n >CMakeLists.txt
        [ $n = 2 ] || vendored
        PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig quiet cmake -S . -B build
        quiet cmake --build build
        quiet build/app
    done
    echo 'CMake: vendored and installed'
}
with_meson() {
    for n in 1 2; do
        project meson-$n
        snippet meson $n >meson.build
        [ $n = 2 ] || vendored
        PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig quiet meson setup build
        quiet ninja -j 1 -C build
        quiet build/app
    done
    echo 'Meson: vendored and installed'
}
vendored() {
    mkdir third_party
    cp "$root/volt.h" third_party
}

# recipe NAME  A copy of examples/packaging/NAME with its source, as its README.md says.
recipe() {
    cp -R "$root/examples/packaging/$1" "$dir/$1"
    mkdir "$dir/$1/src"
    cp "$root/volt.h" "$root/Makefile" "$root/LICENSE" "$dir/$1/src"
    cd "$dir/$1"
}

# says FILE LINE
says() {
    grep -Fqx "$2" "$1" || fail "$1: does not say '$2'"
}

with_buildroot() {
    recipe buildroot
    says volt.mk "VOLT_VERSION = $version"
    cat >stand-in.mk <<'END'
VOLT_PKGDIR := $(CURDIR)
define generic-package
$(if $(filter YES,$(VOLT_INSTALL_STAGING)),,$(error staging))
$(if $(filter NO,$(VOLT_INSTALL_TARGET)),,$(error target))
$(VOLT_SITE)/installed: $(VOLT_SITE)/$(VOLT_LICENSE_FILES) ; $$(VOLT_INSTALL_STAGING_CMDS)
endef
include volt.mk
END
    quiet make -f stand-in.mk STAGING_DIR="$dir/buildroot-staging"
    installed "$dir/buildroot-staging" /usr
    in_sysroot "$dir/buildroot-staging" by-buildroot
    echo 'Buildroot: its commands, with a stand-in for generic-package'
}

with_yocto() {
    recipe yocto
    bb=volt_$version.bb
    sum=$(md5sum <src/LICENSE | cut -d ' ' -f 1)
    says "$bb" "LIC_FILES_CHKSUM = \"file://LICENSE;md5=$sum\""
    {
        echo 'oe_runmake() { make -C src "$@"; }'
        sed -n '/^do_install() {/,/^}/p' "$bb"
        echo do_install
    } >stand-in.sh
    D=$dir/yocto-image prefix=/usr quiet sh -eu stand-in.sh
    installed "$dir/yocto-image" /usr
    in_sysroot "$dir/yocto-image" by-yocto
    echo 'Yocto: do_install, with a stand-in for oe_runmake'
}

with_openwrt() {
    recipe openwrt
    says Makefile "PKG_VERSION:=$version"
    mkdir include
    echo 'INCLUDE_DIR := $(TOPDIR)/include
PKG_BUILD_DIR := $(TOPDIR)/build
CP := cp -fpR' >rules.mk
    cat >include/package.mk <<'END' # what is called begins its lines with tabs: a recipe
define BuildPackage
all: ; $(call Build/Prepare)
$(call Build/Compile)
$(call Build/InstallDev,$(STAGING_DIR))
endef
END
    quiet make TOPDIR="$dir/openwrt" STAGING_DIR="$dir/openwrt-staging"
    installed "$dir/openwrt-staging" /usr
    PKG_CONFIG_LIBDIR=$dir/openwrt-staging/usr/share/pkgconfig \
        by_pkg_config by-openwrt --define-variable=prefix="$dir/openwrt-staging/usr"
    echo 'OpenWrt: its commands, with a stand-in for BuildPackage'
}

with_make
with_cmake
with_meson
with_buildroot
with_yocto
with_openwrt
