#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Gets packages of another processor and another release of the distribution, without installing
# them: apt works on directories of its own, and the package manager of this machine is not touched.
#
#   tests/image/packages.sh DIR SUITE ARCHITECTURE PACKAGE...
#
# Unpacks them into DIR/root. In place of a package of kernels, such as linux-image-armmp, comes the
# kernel that it depends on. Debian's packages are checked by its keys, Ubuntu's by the hashes in
# SUITE.sha256 beside this script.
set -eu
dir=$1 suite=$2 arch=$3
shift 3
here=$(dirname "$(realpath "$0")")
rm -rf "$dir/apt" "$dir/deb" "$dir/root"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial" "$dir/apt/none" "$dir/deb" "$dir/root"
dir=$(realpath "$dir")
hashes=$here/$suite.sha256
if [ -e "$hashes" ]; then
    source="[trusted=yes] http://archive.ubuntu.com/ubuntu"
else
    source="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian"
fi
echo "deb $source $suite main" >"$dir/apt/sources.list"
: >"$dir/apt/status"
cat >"$dir/apt/apt.conf" <<END
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root"; // where root runs this, another user may not write here
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$dir/apt";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "$dir/apt/none";
Dir::Etc::preferencesparts "$dir/apt/none";
Dir::Etc::sourcelist "$dir/apt/sources.list";
Dir::Etc::sourceparts "$dir/apt/none";
END
export APT_CONFIG="$dir/apt/apt.conf"
apt-get -q update >"$dir/apt/log" 2>&1 || { cat "$dir/apt/log" >&2 && exit 1; }
wanted=
for package; do
    kernel=$(apt-cache depends "$package" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
    wanted="$wanted ${kernel:-$package}"
done
cd "$dir/deb"
# shellcheck disable=SC2086 # they are words
apt-get -q download $wanted >>"$dir/apt/log" 2>&1 || { cat "$dir/apt/log" >&2 && exit 1; }
# A hash that stands in the file is not enough: each package must have one.
[ ! -e "$hashes" ] || sha256sum -- * | while read -r hash name; do
    grep -qxF "$hash  $name" "$hashes" ||
        { echo "$name: its hash is not in $hashes" >&2 && exit 1; }
done
for package in *.deb; do dpkg-deb -x "$package" "$dir/root"; done
rm -rf "$dir/deb" "$dir/apt"
