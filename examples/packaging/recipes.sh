#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Fills in the recipes of examples/packaging/ for the archive of a release.
#   UPSTREAM=https://... MAINTAINER='Name <mail>' sh examples/packaging/recipes.sh ARCHIVE DIRECTORY
# The directory, which is removed first, then has a folder for each tool, with the paths that the
# files have in the repository of that tool. In examples/packaging/
#   @UPSTREAM@      is the address of the project. Its archives are where GitHub and Forgejo have
#                   them: @UPSTREAM@/releases/download/vVERSION/volt-VERSION.tar.gz
#   @REPO@          is the end of the address, owner/name
#   @MAINTAINER@    is a name and a mail address
#   @VERSION@       is the version that the second line of volt.h has
#   @SHA256@, @SHA512@   are the sums of the archive
#   @LICENSE_MD5@, @LICENSE_SHA256@   are those of LICENSE
#   @DATE@          is the date of the archive
# `make recipes` runs it.
set -eu
archive=$1
rm -rf "$2"
mkdir -p "$2"
out=$(cd "$2" && pwd)
name=$(basename "$archive" .tar.gz)
version=${name#volt-}
tar -xzf "$archive" -C "$out" "$name/LICENSE"
license=$out/$name/LICENSE
sum() { "$1" <"$2" | cut -d ' ' -f 1; }
fill_in="
    s|@UPSTREAM@|$UPSTREAM|g
    s|@REPO@|$(echo "$UPSTREAM" | sed 's|.*/\([^/]*/[^/]*\)$|\1|')|g
    s|@MAINTAINER@|$MAINTAINER|g
    s|@VERSION@|$version|g
    s|@SHA256@|$(sum sha256sum "$archive")|g
    s|@SHA512@|$(sum sha512sum "$archive")|g
    s|@LICENSE_MD5@|$(sum md5sum "$license")|g
    s|@LICENSE_SHA256@|$(sum sha256sum "$license")|g
    s|@DATE@|$(LC_ALL=C date -u -R -r "$license")|g"
rm -r "${license%/*}"
cd "$(dirname "$0")"

# recipe FROM TO...  Fills in the files of the directory FROM; TO is a directory.
recipe() {
    (cd "$1" && find . -type f) | while IFS= read -r file; do
        to=$out/$2/${file#./}
        mkdir -p "${to%/*}"
        sed "$fill_in" "$1/$file" >"$to"
        [ ! -x "$1/$file" ] || chmod +x "$to"
    done
}
recipe buildroot buildroot/package/volt
recipe clib clib
recipe conan conan/recipes/volt
cp tests/main.c tests/main.cpp "$out/conan/recipes/volt/all/test_package"
recipe debian debian/debian
recipe meson meson/subprojects
recipe openwrt openwrt/package/libs/volt
recipe vcpkg vcpkg/ports/volt
recipe yocto yocto/recipes-support/volt
mv "$out/yocto/recipes-support/volt/volt.bb" "$out/yocto/recipes-support/volt/volt_$version.bb"
# a template is left where a name is not known here
! grep -rnE '@(UPSTREAM|REPO|MAINTAINER|VERSION|SHA256|SHA512|LICENSE_[A-Z0-9]+|DATE)@' "$out"
