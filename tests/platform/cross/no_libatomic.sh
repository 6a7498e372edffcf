#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Fails if a program or object contains or needs a part of libatomic: a name that the library
# defines, whether it is linked or not, or in a program one that the compiler's own library lacks.
#   no_libatomic.sh FILE
names=$(nm "$1") || exit 1
found=$(echo "$names" | grep -E ' (__atomic_|libat_)')
case $(od -An -j16 -N2 -tx1 "$1") in # e_type, in either byte order; 1: an object, not linked yet
' 01 00' | ' 00 01') ;;
*) found=$found$(echo "$names" | grep -E ' U __sync_') ;;
esac
[ -z "$found" ] && exit
echo "$1 needs libatomic:" "$found"
exit 1
