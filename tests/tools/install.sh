#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# The ways to build with volt.h that README.md and examples/README.md show: each builds README's
# first program with gcc and with clang, without a warning, and runs it; and with each the compiler
# must refuse the same program with a local that an await loses. `make packages` tries the packages.
# `make check` runs it:
#   sh tests/tools/install.sh DIRECTORY     for the files; it is removed first
# Prints the ways that passed; stops at the first failure, and shows its output.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$1"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
unset MAKEFLAGS MFLAGS MAKELEVEL PREFIX DESTDIR PKG_CONFIG_PATH
compilers='gcc clang'
warnings='-Wall -Wextra -Werror'

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

# snippet PAGE LANGUAGE N  The n-th block of that language in the page.
snippet() {
    awk -v begin="\`\`\`$2" -v want="$3" '
        /^```/ && inside { exit }
        inside { print }
        $0 == begin && ++n == want { inside = 1 }
    ' "$root/$1" | grep . || fail "$1: no block $3 of $2"
}

# installed TREE PREFIX  Only these files are there.
installed() {
    (cd "$1" && find . -type f | sort) >"$dir/got"
    printf '%s\n' include/volt.h share/pkgconfig/volt.pc share/volt/volt-config-version.cmake \
        share/volt/volt-config.cmake share/volt/volt.c | sed "s|^|.$2/|" >"$dir/want"
    diff "$dir/want" "$dir/got" || fail "$1: other files than these were installed"
    cmp "$root/volt.h" "$1/$2/include/volt.h"
}

# project NAME  A directory with README's first program, which exits with 0.
project() {
    mkdir "$dir/$1"
    snippet README.md c 1 >"$dir/$1/main.c"
    cd "$dir/$1"
}

# lose_a_local  The same program, but one task keeps a number in a local across an await.
lose_a_local() {
    awk '
        /^    VOLT_BEGIN\(cx, c\);$/ { $0 = $0 "\n    int rc = c->left;" }
        sub(/VOLT_END\(0\)/, "VOLT_END(rc)") { lost = 1 }
        { print }
        END { exit !lost }
    ' main.c >lost.c || fail "README.md: its first program has no task like countdown_run"
    mv lost.c main.c
}

# refused COMMAND...  The command fails, as the compiler has detected that a local is lost.
refused() {
    ! "$@" >"$dir/log" 2>&1 || fail "$PWD: $*: compiles a local that an await loses"
    grep -Eq 'error: (switch jumps over variable init|variable .rc. may be uninit)' "$dir/log" || {
        tail -n 40 "$dir/log"
        fail "$PWD: $*: does not say that a local is lost"
    }
}

# built RUN BUILD...  The program compiles and runs; with a lost local it does not compile.
built() {
    run=$1
    shift
    quiet "$@"
    quiet "$run"
    lose_a_local
    refused "$@"
}

# flag_of COMPILER  The warning of that compiler for locals that an await loses, as README has it.
flag_of() {
    case $1 in
    gcc) flag=-Wjump-misses-init ;;
    clang) flag=-Wconditional-uninitialized ;;
    esac
    grep -Fq -e "\`$flag\` ($1)" "$root/README.md" || fail "README.md: does not name $flag ($1)"
    echo "$flag"
}

# by_pkg_config NAME OPTION...  Compiles a project with the flags that pkg-config gives.
by_pkg_config() {
    name=$1
    shift
    version=$(pkg-config --modversion volt)
    flags=$(pkg-config "$@" --cflags --libs volt)
    for CC in $compilers; do
        project "$name-$CC"
        # shellcheck disable=SC2086 # lists of flags
        built ./app "$CC" $warnings "$(flag_of "$CC")" main.c -o app $flags
    done
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

# in_sysroot TREE NAME  The tree as pkg-config of Buildroot and Yocto sees it.
in_sysroot() {
    PKG_CONFIG_SYSROOT_DIR=$1 PKG_CONFIG_LIBDIR=$1/usr/share/pkgconfig by_pkg_config "$2"
}

# gcc suppresses warnings about system headers, including those of /usr/local/include.
with_a_system_directory() {
    for CC in $compilers; do
        project "system-directory-$CC"
        # shellcheck disable=SC2086 # lists of flags
        built ./app "$CC" $warnings "$(flag_of "$CC")" -isystem "$dir/prefix/include" main.c \
            -o app -pthread
    done
    echo 'a system directory: the compilers see a lost local all the same'
}

# with_tool NAME LANGUAGE FILE SETUP...  Runs a build tool with each compiler: the first block of
# its language in examples/README.md has volt.h in the tree, the second one finds the installed one,
# and the third one has the whole project in the tree, with the implementation as its own unit.
with_tool() {
    name=$1 language=$2 file=$3
    shift 3
    for CC in $compilers; do
        for n in 1 2 3; do
            project "$language-$n-$CC"
            snippet examples/README.md "$language" $n >"$file"
            case $n in
            1) mkdir third_party && cp "$root/volt.h" third_party ;;
            3) whole "$language" ;;
            esac
            CMAKE_PREFIX_PATH=$dir/prefix PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig CC=$CC \
                CFLAGS=-Werror quiet "$@"
            built build/app ninja -j 1 -C build
        done
    done
    echo "$name: volt.h in the tree, installed, and the whole project in the tree"
}
# whole LANGUAGE  What the third block of a tool needs.
whole() {
    from=$root/examples/packaging
    case $1 in cmake) to=third_party/volt ;; meson) to=subprojects/volt ;; esac
    mkdir -p "$to/examples/packaging" # as an archive has it
    cp "$root/volt.h" "$from/CMakeLists.txt" "$from/meson.build" "$to"
    cp -R "$from/share" "$from/volt.pc.in" "$to/examples/packaging"
    grep -v VOLT_IMPLEMENTATION main.c >rest.c
    mv rest.c main.c
}
with_cmake() { with_tool CMake cmake CMakeLists.txt cmake -G Ninja -S . -B build; }
with_meson() { with_tool Meson meson meson.build meson setup build; }

with_make
with_a_system_directory
with_cmake
with_meson
