#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Makes the archive of a release, DIRECTORY/volt-VERSION.tar.gz, of the files that git knows or
# would know, as they are in the work tree; in an unpacked archive of all files. The same files and
# the same last commit make the same archive; SOURCE_DATE_EPOCH replaces the time of that commit.
#   sh examples/packaging/dist.sh DIRECTORY
# Prints its path. `make dist` runs it.
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
version=$(sed -n '2s|^// volt.h \([0-9.]*\) - .*|\1|p' volt.h)
[ -n "$version" ] || { echo 'dist.sh: the second line of volt.h has no version' >&2 && exit 1; }
archive=$out/volt-$version.tar.gz
if [ -e .git ]; then
    git ls-files --cached --others --exclude-standard >"$archive.files"
    time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
else
    find . -path ./build -prune -o -type f -print | sed 's|^\./||' >"$archive.files"
    time=${SOURCE_DATE_EPOCH:-$(stat -c %Y volt.h)}
fi
# CMake and Meson look for these in the root of a project.
to_root='^examples/packaging/\(CMakeLists\.txt\|meson\.build\)$'
# In the order of the names in the archive. A file that was removed and not committed is still
# listed.
sed "s,$to_root,\1\t&,; t; s,.*,&\t&," "$archive.files" | LC_ALL=C sort -u | cut -f 2 |
    while IFS= read -r file; do
        [ ! -e "$file" ] || printf '%s\n' "$file"
    done | tar --create --files-from=- --format=gnu --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --mtime="@$time" \
    --transform="s,$to_root,\1," --transform="s,^,volt-$version/," | gzip -9n >"$archive.new"
rm "$archive.files"
mv "$archive.new" "$archive"
echo "$archive"
