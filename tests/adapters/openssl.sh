#!/bin/sh
# SPDX-License-Identifier: MIT OR 0BSD
# Runs the test of examples/adapters/volt_openssl.h, and examples/adapters/openssl.c and https.c
# against the openssl command, curl and nc: both sides of a handshake, sessions, refusals, ends, and
# peers that misbehave.
#
#   tests/adapters/openssl.sh DIRECTORY     with the programs, see adapters.mk
set -eu
bin=$1
here=$(dirname "$0")
name=openssl
versions='-tls1_2 -tls1_3'
says_alert='alert'
says_no_common_protocol='no application protocol'
says_old_version='unsupported protocol'
says_garbage='wrong version number'
says_http='http request'
says_no_record=$says_garbage
says_wrong_name='hostname mismatch'
says_wrong_address='IP address mismatch'
says_unknown='self.signed certificate'
says_no_file='[Nn]o such file'
. "$here/tls/peers.sh"

all_forms
unit_tests plain env TLS_1_2=1
all_peers
serve echo
a_key_update
stop
