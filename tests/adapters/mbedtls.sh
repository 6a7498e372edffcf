#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the test of examples/adapters/volt_mbedtls.h, and examples/adapters/mbedtls.c and https.c, as
# openssl.sh does.
#
#   tests/adapters/mbedtls.sh DIRECTORY     with the programs, see adapters.mk
set -eu
bin=$1
here=$(dirname "$0")
name=mbedtls
versions=-tls1_2 # mbedTLS 2.28 has no more
says_alert='alert message was received'
says_no_common_protocol='Processing of the ClientHello'
says_old_version='min/max boundaries'
says_garbage='Processing of the ClientHello'
says_http=$says_garbage
says_no_record='invalid SSL record'
says_wrong_name='does not match'
says_wrong_address='does not match'
says_unknown='not correctly signed'
says_no_file='file failed'
. "$here/tls/peers.sh"

all_forms
all_peers
