#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Checks each recipe by its own tool: an archive of this tree is fetched, by its file: address,
# checked, installed, and used by programs in C and in C++, which run.
#   UPSTREAM=... MAINTAINER=... sh examples/packaging/packages.sh DIRECTORY [PART...]
# The directory is removed first. A part is the name of a function below: by_NAME. A tool that is
# not there is skipped, with the name of the package that brings it. Trees of sources are named by
# variables, and not changed:
#   BUILDROOT, OPENWRT   a checkout of Buildroot, of OpenWrt
#   OE_CORE              one of OpenEmbedded-Core, with bitbake/ in it
#   VCPKG_ROOT           one of vcpkg, with the program vcpkg
# Programs in build/venv/bin are found, too. `make packages` runs it. Ends with
# "packages: N passed, N failed, N skipped".
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/examples/packaging}
rm -rf "$1" && mkdir -p "$1" || exit 1
dir=$(cd "$1" && pwd)
shift
[ ! -d "$root/build/venv" ] || PATH=$root/build/venv/bin:$PATH
export CMAKE_EXPORT_COMPILE_COMMANDS=ON CMAKE_GENERATOR=Ninja
unset MAKEFLAGS MFLAGS MAKELEVEL PREFIX DESTDIR PKG_CONFIG_PATH CMAKE_PREFIX_PATH
version=$(sed -n '2s|^// volt.h \([0-9.]*\) - .*|\1|p' "$root/volt.h")
archive=$dir/upstream/releases/download/v$version/volt-$version.tar.gz
here_upstream=file://$dir/upstream
: >"$dir/results"

ok() {
    echo "  ok    $part: $*" | tee -a "$dir/results"
}
# skip WHAT PACKAGE
skip() {
    echo "  skip  $part: no $1; $2" | tee -a "$dir/results"
    exit 0
}
fail() {
    echo "packages.sh: $part: $*" >&2
    exit 1
}
# needs COMMAND PACKAGE
needs() {
    command -v "$1" >/dev/null 2>&1 || skip "$1" "$2"
}
# quiet COMMAND...  Shows the output only if the command fails.
quiet() {
    "$@" >"$dir/log" 2>&1 || {
        tail -n 40 "$dir/log"
        fail "$*"
    }
}
# refuses TEXT COMMAND...  The command fails, and its output has the text.
refuses() {
    text=$1
    shift
    ! "$@" >"$dir/log" 2>&1 || fail "is accepted: $*"
    grep -Eq "$text" "$dir/log" || { tail -n 40 "$dir/log" && fail "does not say '$text': $*"; }
}
counts_down() { # PROGRAM...
    for program; do
        said=$("$program" | tr -d '\n')
        [ "$said" = 321 ] || fail "$program prints '$said'"
    done
}
# no_system_header FILE  No compilation has the directory of volt.h as one of the system.
no_system_header() {
    ! grep -E -e "-(isystem|idirafter) ?$dir" "$1" || fail "$1: volt.h is in a system directory"
}
unpacked() { # DIRECTORY
    mkdir -p "$1"
    tar -xzf "$archive" -C "$1" --strip-components=1
}
files_of() {
    (cd "$1" && find . -type f | sort)
}
# installed TREE PREFIX  Exactly the files of `make install` are there, and volt.h is the whole one.
installed() {
    printf '%s\n' include/volt.h share/pkgconfig/volt.pc share/volt/volt-config-version.cmake \
        share/volt/volt-config.cmake share/volt/volt.c | sed "s|^|.$2/|" >"$dir/want"
    files_of "$1" | diff "$dir/want" - || fail "$1: other files than these were installed"
    cmp "$root/volt.h" "$1$2/include/volt.h"
}

# ---- programs that use it: examples/packaging/tests
# cmake_program NAME SOURCE OPTION...  Builds and runs it in $dir/NAME.
cmake_program() {
    name=$1 source=$2
    shift 2
    quiet cmake -S "$source" -B "$dir/$name" "$@"
    quiet cmake --build "$dir/$name" -j 1
    counts_down "$dir/$name/in_c" "$dir/$name/in_cpp" "$dir/$name/own_unit"
    no_system_header "$dir/$name/compile_commands.json"
}
# meson_program OPTION...  The same in the current directory, which has the sources.
meson_program() {
    quiet meson setup "$@" build
    quiet ninja -j 1 -C build
    counts_down build/in_c build/in_cpp build/own_unit
    no_system_header build/compile_commands.json
}
# pkg_config_program NAME OPTION...  By the flags of pkg-config; a sysroot moves the paths that it
# gives.
pkg_config_program() {
    name=$1
    shift
    implementation=$(pkg-config "$@" --variable=implementation volt) # pkgconf adds the sysroot
    [ -e "$implementation" ] || implementation=${PKG_CONFIG_SYSROOT_DIR-}$implementation
    flags=$(pkg-config "$@" --cflags --libs volt)
    for cc in gcc clang; do
        # shellcheck disable=SC2086 # a list of flags
        ! command -v $cc >/dev/null || {
            quiet $cc -Wall -Wextra -Werror "$here/tests/main.c" "$implementation" $flags \
                -o "$dir/$name-$cc"
            counts_down "$dir/$name-$cc"
        }
    done
}

# ---- the version and the address
by_text() {
    fill_in='@(UPSTREAM|REPO|MAINTAINER|VERSION|SHA256|SHA512|LICENSE_[A-Z0-9]+|DATE)@'
    ! grep -rnE "$fill_in" "$dir/recipes" || fail 'a recipe is not filled in'
    # The version is in the second line of volt.h and, if it has the macros, in these.
    macro() { sed -n "s|^# *define $1 *\([^ ]*\).*|\1|p" "$root/volt.h" | tr -d '"'; }
    for name in VOLT_VERSION_TEXT:$version \
        VOLT_VERSION:"$(echo "$version" | awk -F. '{ print $1 * 10000 + $2 * 100 + $3 }')"; do
        said=$(macro "${name%:*}")
        [ -z "$said" ] || [ "$said" = "${name#*:}" ] || fail "volt.h: ${name%:*} is $said"
    done
    grep -q "^Version ${version%.*}[,. ]" "$root/README.md" ||
        fail "README.md: not Version ${version%.*}"
    grep -q "^## ${version}\$" "$root/.github/CHANGELOG.md" ||
        fail "CHANGELOG.md: no section ## $version"
    ok "version $version in volt.h, README.md and CHANGELOG.md"

    cd "$root"
    others=$(grep -rnE '(https?|git|ssh)://|[a-z]@[a-z]+\.' --exclude=packages.sh \
        examples/packaging Makefile README.md examples/README.md .github |
        grep -vE 'https://www\.debian\.org/doc/packaging-manuals/|http://127|=https://\.\.\.' |
        grep -vE '^examples/packaging/packaging\.mk:.*(UPSTREAM|MAINTAINER) \?=' || true)
    [ -z "$others" ] || fail "an address beside that of packaging.mk: $others"
    ok 'the address is in packaging.mk alone'
    sh "$here/dist.sh" "$dir/again" >/dev/null
    cmp "$archive" "$dir/again/volt-$version.tar.gz" || fail 'the archive is another one each time'
    unpacked "$dir/unpacked"
    cd "$dir/unpacked"
    SOURCE_DATE_EPOCH=$(stat -c %Y volt.h) quiet sh examples/packaging/dist.sh ../again
    cmp "$archive" "$dir/again/volt-$version.tar.gz" || fail 'an unpacked archive gives another one'
    ok 'the same tree gives the same archive, and so does the archive itself'
    for path in $(grep -rhoE 'examples/packaging/[a-zA-Z0-9_./-]*[a-zA-Z0-9]' "$dir/released" \
        CMakeLists.txt meson.build | sort -u); do
        [ -e "$path" ] || fail "a recipe names $path: the archive has no such file"
    done
    ok 'the archive has all files that the recipes name'
}

# ---- make install
by_make() {
    installed "$reference" ''
    PKG_CONFIG_SYSROOT_DIR=$dir/reference PKG_CONFIG_LIBDIR=$reference/share/pkgconfig \
        pkg_config_program make-program
    said=$(PKG_CONFIG_LIBDIR=$reference/share/pkgconfig pkg-config --modversion volt)
    [ "$said" = "$version" ] || fail "volt.pc says $said"
    ok "pkg-config finds volt $version and its implementation"
}

by_cmake() {
    needs cmake 'Debian packages: cmake ninja-build'
    needs g++ 'Debian package: g++'
    quiet cmake -S "$dir/source" -B "$dir/cmake-install" -DCMAKE_INSTALL_PREFIX="$dir/prefix"
    rm -rf "$dir/prefix"
    quiet cmake --install "$dir/cmake-install"
    diff -r "$reference" "$dir/prefix" || fail 'installs other files than make'
    ok 'installs the same files as make'

    mkdir "$dir/cmake-sub"
    cp -R "$here/tests/." "$dir/cmake-sub"
    unpacked "$dir/cmake-sub/volt"
    cmake_program cmake-subdirectory "$dir/cmake-sub" -DHOW=subdirectory
    ok 'add_subdirectory'

    hash=$(sha256sum <"$archive" | cut -d ' ' -f 1)
    cmake_program cmake-fetch "$here/tests" -DHOW=fetch -DARCHIVE="file://$archive" -DHASH="$hash" \
        -DVOLT_DEFINITIONS='VOLT_SINGLE_THREAD;VOLT_NO_IO'
    for program in in_c own_unit; do
        ! nm "$dir/cmake-fetch/$program" | grep -E ' (volt_read|pthread_create)(@|$)' ||
            fail "VOLT_DEFINITIONS has no effect on $program"
    done
    ok 'FetchContent from a local archive; VOLT_DEFINITIONS reaches every file'
    refuses 'does not match expected value' cmake -S "$here/tests" -B "$dir/cmake-other" \
        -DHOW=fetch -DARCHIVE="file://$archive" -DHASH="$(echo x | sha256sum | cut -d ' ' -f 1)"

    found=-DCMAKE_PREFIX_PATH=$dir/prefix
    cmake_program cmake-find "$here/tests" "$found" -DCMAKE_BUILD_TYPE=Release \
        -DVERSION_WANTED="${version%.*}"
    nm "$dir/cmake-find/own_unit" | grep -q ' T volt_read$' ||
        fail 'volt_read is not in the program'
    ok 'find_package(volt) with a version; volt::volt with a unit of the program'
    for other in 99 0.0 "${version%.*}.99"; do
        refuses 'considered but not accepted' cmake -S "$here/tests" \
            -B "$dir/cmake-version" "$found" -DVERSION_WANTED="$other"
        rm -rf "$dir/cmake-version"
    done
    ok 'find_package(volt) refuses versions with another interface, and later ones'
    quiet cmake -S "$here/tests/only_cpp" -B "$dir/cmake-cpp" "$found"
    quiet cmake --build "$dir/cmake-cpp" -j 1
    counts_down "$dir/cmake-cpp/in_cpp"
    ok 'a project without C'
}

by_meson() {
    needs meson 'Debian packages: meson ninja-build'
    needs g++ 'Debian package: g++'
    rm -rf "$dir/prefix"
    quiet meson setup "$dir/meson-install" "$dir/source" --prefix "$dir/prefix"
    quiet meson install -C "$dir/meson-install"
    diff -r "$reference" "$dir/prefix" || fail 'installs other files than make'
    ok 'installs the same files as make'
    for how in subproject wrap installed; do
        mkdir "$dir/meson-$how"
        cp -R "$here/tests/." "$dir/meson-$how"
        cd "$dir/meson-$how"
        case $how in
        subproject)
            unpacked subprojects/volt
            meson_program -Dc_args=-DVOLT_NO_IO -Dcpp_args=-DVOLT_NO_IO
            ! nm build/in_c | grep ' volt_read$' || fail 'a definition has no effect'
            ok 'a subproject; a definition reaches every file'
            ;;
        wrap)
            cp -R "$dir/recipes/meson/subprojects" .
            meson_program
            nm build/in_c | grep -q ' volt_read$' || fail 'volt_read is not in the program'
            ok 'a wrap fetches the archive'
            cd "$dir"
            cp -R meson-wrap meson-other
            cd meson-other
            rm -rf build subprojects/volt-* subprojects/packagecache
            sed -i 's/^source_hash = ...../source_hash = 00000/' subprojects/volt.wrap
            refuses 'Incorrect hash' meson setup build
            ;;
        installed)
            PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig meson_program
            ok 'an installed volt.h, by volt.pc'
            ;;
        esac
    done
}

by_conan() {
    needs conan 'package of PyPI: conan'
    export CONAN_HOME="$dir/conan"
    quiet conan profile detect
    conan create "$dir/recipes/conan/recipes/volt/all" --version "$version" \
        -c tools.build:jobs=1 -c tools.cmake.cmaketoolchain:generator=Ninja >"$dir/log" 2>&1 || {
        tail -n 40 "$dir/log"
        fail 'conan create'
    }
    [ "$(grep -cx 1 "$dir/log")" -eq 2 ] || fail 'the programs of test_package did not run'
    no_system_header "$(find "$dir/recipes/conan" -name compile_commands.json)"
    ok 'conan create, with its programs in C and in C++'
}

by_vcpkg() {
    [ -x "${VCPKG_ROOT-}/vcpkg" ] || skip vcpkg 'VCPKG_ROOT=... names a checkout'
    export VCPKG_ROOT VCPKG_DISABLE_METRICS=1 VCPKG_FORCE_SYSTEM_BINARIES=1 VCPKG_MAX_CONCURRENCY=1
    export VCPKG_BINARY_SOURCES=clear
    mkdir -p "$dir/vcpkg/downloads"
    port=$dir/recipes/vcpkg/ports/volt
    cp "$port/vcpkg.json" "$dir/vcpkg"
    quiet "$VCPKG_ROOT/vcpkg" format-manifest "$dir/vcpkg/vcpkg.json"
    diff "$port/vcpkg.json" "$dir/vcpkg/vcpkg.json" || fail 'vcpkg.json is not in its form'
    quiet "$VCPKG_ROOT/vcpkg" install volt --classic --overlay-ports="${port%/volt}" \
        --x-install-root="$dir/vcpkg/installed" --x-buildtrees-root="$dir/vcpkg/buildtrees" \
        --x-packages-root="$dir/vcpkg/packages" --downloads-root="$dir/vcpkg/downloads"
    ! grep -i 'warning' "$dir/log" || fail 'vcpkg warns of the port'
    triplet=$(cd "$dir/vcpkg/installed" && echo *-linux)
    ok 'vcpkg install, without a warning of its checks'
    cmake_program vcpkg-program "$here/tests" -DVCPKG_INSTALLED_DIR="$dir/vcpkg/installed" \
        -DCMAKE_TOOLCHAIN_FILE="$VCPKG_ROOT/scripts/buildsystems/vcpkg.cmake" \
        -DVCPKG_MANIFEST_MODE=OFF -DVCPKG_TARGET_TRIPLET="$triplet"
    PKG_CONFIG_LIBDIR=$dir/vcpkg/installed/$triplet/share/pkgconfig pkg_config_program vcpkg-pc
    ok 'programs by its toolchain file and by pkg-config'
}

by_debian() {
    needs dpkg-buildpackage 'Debian package: dpkg-dev'
    needs dh 'Debian package: debhelper'
    needs lintian 'Debian package: lintian'
    mkdir "$dir/debian"
    cp "$archive" "$dir/debian/volt_$version.orig.tar.gz"
    unpacked "$dir/debian/volt-$version"
    cp -R "$dir/released/debian/debian" "$dir/debian/volt-$version"
    cd "$dir/debian/volt-$version"
    quiet dpkg-buildpackage -us -uc
    ok 'dpkg-buildpackage'
    cd ..
    quiet lintian --allow-root --display-info --pedantic --fail-on error,warning,info,pedantic \
        "volt_$version-1_"*.changes
    ! grep -E '^[EWIP]:' "$dir/log" || fail 'lintian warns'
    ok 'lintian: no error, warning, information or pedantic remark'
    dpkg-deb -x "libvolt-dev_$version-1_all.deb" "$dir/debian/root"
    cp -R "$dir/debian/root" "$dir/debian/files"
    rm -r "$dir/debian/files/usr/share/doc" "$dir/debian/files/usr/share/lintian"
    installed "$dir/debian/files" /usr
    mkdir "$dir/debian/temporary"
    (cd "volt-$version" && AUTOPKGTEST_TMP=$dir/debian/temporary \
        CMAKE_PREFIX_PATH=$dir/debian/root/usr quiet debian/tests/cmake)
    mkdir "$dir/debian/bin"
    printf '#!/bin/sh\nexec %s --define-variable=prefix=%s/usr "$@"\n' "$(command -v pkg-config)" \
        "$dir/debian/root" >"$dir/debian/bin/pkg-config"
    chmod +x "$dir/debian/bin/pkg-config"
    (cd "volt-$version" && AUTOPKGTEST_TMP=$dir/debian/temporary PATH=$dir/debian/bin:$PATH \
        PKG_CONFIG_LIBDIR=$dir/debian/root/usr/share/pkgconfig quiet debian/tests/pkg-config)
    ok 'the two programs of debian/tests'
}

# ---- Buildroot: its check-package; then its own make fetches, checks, unpacks and installs the
# package. The toolchain and the tools of the host count as installed: the header needs none.
by_buildroot() {
    mkdir "$dir/buildroot-alone"
    cd "$dir/buildroot-alone"
    cat >Makefile <<END
define generic-package
$dir/source/\$(VOLT_LICENSE_FILES).installed: ; \$\$(VOLT_INSTALL_STAGING_CMDS)
endef
include $dir/recipes/buildroot/package/volt/volt.mk
END
    quiet make STAGING_DIR="$PWD/staging"
    installed "$PWD/staging" /usr
    ok 'its commands, with a stand-in for generic-package'
    [ -d "${BUILDROOT-}" ] || skip check-package 'BUILDROOT=... names a checkout of Buildroot'
    export BUILDROOT
    python3 -c 'import magic' 2>/dev/null ||
        skip 'module magic of Python' 'Debian package: python3-magic'
    recipe=$dir/released/buildroot/package/volt
    quiet python3 "$BUILDROOT/utils/check-package" --br2-external "$recipe"/*
    grep -q '^[1-9][0-9]* lines processed' "$dir/log" || fail 'check-package has read nothing'
    grep -qx '0 warnings generated' "$dir/log" || fail 'check-package warns'
    mkdir "$dir/buildroot-other"
    cp "$recipe"/* "$dir/buildroot-other"
    echo 'VOLT_OTHER = 1 ' >>"$dir/buildroot-other/volt.mk"
    refuses 'trailing whitespace' python3 "$BUILDROOT/utils/check-package" --br2-external \
        "$dir/buildroot-other"/*
    ok 'check-package: no warning'
    for tool in cpio rsync bc; do needs $tool "Debian package: $tool"; done

    external=$dir/buildroot-external
    mkdir -p "$external"
    cp -R "$dir/recipes/buildroot/package" "$external"
    echo 'name: VOLT_TEST' >"$external/external.desc"
    # shellcheck disable=SC2016 # for make and Kconfig
    echo 'include $(sort $(wildcard $(BR2_EXTERNAL_VOLT_TEST_PATH)/package/*/*.mk))' \
        >"$external/external.mk"
    # shellcheck disable=SC2016
    echo 'source "$BR2_EXTERNAL_VOLT_TEST_PATH/package/volt/Config.in"' >"$external/Config.in"
    printf 'BR2_%s=y\n' x86_64 INIT_NONE TOOLCHAIN_EXTERNAL TOOLCHAIN_EXTERNAL_BOOTLIN \
        PACKAGE_VOLT >"$dir/buildroot-defconfig"
    made() {
        quiet make -C "$BUILDROOT" O="$dir/buildroot" BR2_EXTERNAL="$external" \
            BR2_DL_DIR="$dir/buildroot-dl" TAR="$(command -v tar)" "$@"
    }
    made BR2_DEFCONFIG="$dir/buildroot-defconfig" defconfig
    made printvars VARS='TOOLCHAIN_EXTERNAL_BOOTLIN_VERSION HOST_TAR_VERSION'
    for package in toolchain toolchain-external \
        "toolchain-external-bootlin-$(sed -n 's/^TOOLCHAIN_.*=//p' "$dir/log")" \
        "host-tar-$(sed -n 's/^HOST_TAR.*=//p' "$dir/log")"; do
        mkdir -p "$dir/buildroot/build/$package"
        for stamp in downloaded actual_downloaded extracted patched configured built \
            staging_installed images_installed target_installed host_installed installed; do
            : >"$dir/buildroot/build/$package/.stamp_$stamp"
        done
    done
    made volt
    made volt-legal-info
    cmp "$root/LICENSE" "$dir/buildroot/legal-info/licenses/volt-$version/LICENSE"
    staging=$dir/buildroot/host/x86_64-buildroot-linux-gnu/sysroot
    PKG_CONFIG_SYSROOT_DIR=$staging PKG_CONFIG_LIBDIR=$staging/usr/share/pkgconfig \
        pkg_config_program buildroot-program
    ok 'its own make fetches, checks and installs volt, with the toolchain taken as installed'
}

# ---- OpenWrt: its own make, in a copy without other packages; the tools of the host are the
# system's.
by_openwrt() {
    mkdir -p "$dir/openwrt-alone/include"
    cd "$dir/openwrt-alone"
    printf 'INCLUDE_DIR := %s/include\nPKG_BUILD_DIR := %s/source\n' "$PWD" "$dir" >rules.mk
    cat >include/package.mk <<'END'
define BuildPackage
all: ; $(call Build/InstallDev,$(STAGING_DIR))
endef
END
    quiet make -f "$dir/recipes/openwrt/package/libs/volt/Makefile" TOPDIR="$PWD" \
        STAGING_DIR="$PWD/staging"
    installed "$PWD/staging" /usr
    ok 'its commands, with a stand-in for BuildPackage'
    [ -d "${OPENWRT-}" ] || skip OpenWrt 'OPENWRT=... names a checkout of OpenWrt'
    needs gawk 'Debian package: gawk'
    mkdir -p "$dir/openwrt/package/libs"
    cd "$dir/openwrt"
    cp -R "$OPENWRT/Makefile" "$OPENWRT/rules.mk" "$OPENWRT/include" "$OPENWRT/scripts" \
        "$OPENWRT/Config.in" "$OPENWRT/config" .
    ln -s "$OPENWRT/target" "$OPENWRT/toolchain" "$OPENWRT/tools" .
    cp "$OPENWRT/package/Makefile" package
    cp -R "$OPENWRT/package/libs/toolchain" "$dir/recipes/openwrt/package/libs/volt" package/libs
    : >feeds.conf.default
    printf 'CONFIG_TARGET_%s=y\n' x86 x86_64 >.config
    made() { quiet make FORCE=1 NO_DEPS=1 V=s "$@"; }
    made defconfig
    made package/libs/volt/download
    made package/libs/volt/check
    ! grep -A2 'libs/volt' "$dir/log" | grep WARNING || fail 'make check warns'
    for tool in flock gzip; do ln -sf "$(command -v $tool)" staging_dir/host/bin/$tool; done
    ln -sf gzip staging_dir/host/bin/libdeflate-gzip
    made package/libs/volt/compile
    staging=$(echo "$dir"/openwrt/staging_dir/target-*)
    PKG_CONFIG_LIBDIR=$staging/usr/share/pkgconfig pkg_config_program openwrt-program \
        --define-variable=prefix="$staging/usr"
    ok 'its own make fetches, checks and installs volt'
}

by_yocto() {
    recipe=$(echo "$dir"/recipes/yocto/recipes-support/volt/*.bb)
    {
        echo "oe_runmake() { make -C '$dir/source' \"\$@\"; }"
        sed -n '/^do_install() {/,/^}/p' "$recipe"
        echo do_install
    } >"$dir/yocto-alone.sh"
    D=$dir/yocto-alone prefix=/usr quiet sh -eu "$dir/yocto-alone.sh"
    installed "$dir/yocto-alone" /usr
    ok 'do_install, with a stand-in for oe_runmake'
    recipe=$(echo "$dir"/released/yocto/recipes-support/volt/*.bb)
    if command -v oelint-adv >/dev/null; then
        # the stand-in for the address does not answer; there is no CPE name
        quiet oelint-adv --quiet --suppress oelint.vars.homepageping \
            --suppress oelint.var.suggestedvar.CVE_PRODUCT "$recipe"
        ! grep -E ':(error|warning|info):' "$dir/log" || fail 'oelint-adv warns'
        ok 'oelint-adv: no remark'
    else
        (skip oelint-adv 'package of PyPI: oelint-adv')
    fi
    [ -d "${OE_CORE-}/bitbake" ] ||
        skip bitbake 'OE_CORE=... names a checkout of OpenEmbedded-Core with bitbake/ in it'
    needs gawk 'Debian package: gawk'
    needs chrpath 'Debian package: chrpath'
    locale -a | grep -qi '^en_US.utf' || skip 'locale en_US.UTF-8' 'Debian package: locales'
    mkdir -p "$dir/yocto/layer/conf"
    cp -R "$dir/recipes/yocto/recipes-support" "$dir/yocto/layer"
    series=$(sed -n 's/^LAYERSERIES_CORENAMES = //p' "$OE_CORE/meta/conf/layer.conf")
    cat >"$dir/yocto/layer/conf/layer.conf" <<END
BBPATH .= ":\${LAYERDIR}"
BBFILES += "\${LAYERDIR}/recipes-*/*/*.bb"
BBFILE_COLLECTIONS += "volt"
BBFILE_PATTERN_volt = "^\${LAYERDIR}/"
BBFILE_PRIORITY_volt = "9"
LAYERSERIES_COMPAT_volt = $series
END
    cd "$OE_CORE"
    set -- "$dir/yocto/build" # not all shells pass arguments to `.`
    set +u
    # shellcheck disable=SC1091 # of OE-Core
    . ./oe-init-build-env >"$dir/log" 2>&1
    [ "$PWD" = "$dir/yocto/build" ] || fail "oe-init-build-env: $(cat "$dir/log")"
    echo "BBLAYERS += \"$dir/yocto/layer\"" >>conf/bblayers.conf
    # a script stands for pseudo, which is not built: the files are those of the user
    # shellcheck disable=SC2016 # for that script
    printf '#!/bin/sh\n[ "$1" = -S ] || exec "$@"\n' >"$dir/yocto/pseudo"
    chmod +x "$dir/yocto/pseudo"
    cat >>conf/local.conf <<END
BB_NUMBER_THREADS = "1"
BB_NUMBER_PARSE_THREADS = "1"
PARALLEL_MAKE = "-j 1"
INHERIT:remove = "sanity uninative"
BB_SERVER_TIMEOUT = "0"
FAKEROOTCMD = "$dir/yocto/pseudo"
FAKEROOTBASEENV = ""
FAKEROOTENV = ""
END
    for task in install populate_lic; do
        quiet bitbake -b "$dir/yocto/layer/recipes-support/volt/volt_$version.bb" -c $task
        ! grep -E '^(ERROR|WARNING: volt)' "$dir/log" || fail 'bitbake warns of the recipe'
    done
    image=$(find "$dir/yocto/build/tmp/work" -type d -path '*/volt/*/image' ! -path '*/sources/*')
    installed "$image" /usr
    PKG_CONFIG_SYSROOT_DIR=$image PKG_CONFIG_LIBDIR=$image/usr/share/pkgconfig \
        pkg_config_program yocto-program
    ok 'bitbake fetches, checks, unpacks and installs volt, and finds its license'
}

by_clib() {
    needs clib-install 'the program clib of GitHub: clibs/clib'
    mkdir "$dir/clib"
    cp "$dir/released/clib/clib.json" "$dir/clib"
    cd "$dir/clib"
    HOME=$dir/clib quiet clib-install ./clib.json
    ! grep -E 'warning|error' "$dir/log" || fail 'clib warns'
    ok 'clib accepts clib.json'
}

# ---- all parts
part=packages
mkdir -p "${archive%/*}" "$dir/source"
sh "$here/dist.sh" "${archive%/*}" >/dev/null || exit 1
unpacked "$dir/source"
# the files that `make install` makes below $dir/prefix
reference=$dir/reference$dir/prefix
make -C "$dir/source" install DESTDIR="$dir/reference" PREFIX="$dir/prefix" >"$dir/log" || exit 1
# `recipes` for the archive here, `released` for the address that is published
UPSTREAM=$here_upstream sh "$here/recipes.sh" "$archive" "$dir/recipes" || exit 1
sh "$here/recipes.sh" "$archive" "$dir/released" || exit 1
[ $# -gt 0 ] || set -- text make cmake meson conan vcpkg debian buildroot openwrt yocto clib
for part; do
    (
        set -eu
        "by_$part"
    )
    # shellcheck disable=SC2181 # in `if` the options of the shell would not hold
    [ $? -eq 0 ] || echo "  FAIL  $part" | tee -a "$dir/results"
done
count() { grep -c "^  $1 " "$dir/results"; }
echo "packages: $(count ok) passed, $(count FAIL) failed, $(count skip) skipped"
[ "$(count FAIL)" -eq 0 ] && [ "$(count ok)" -gt 0 ]
