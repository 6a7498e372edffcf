# SPDX-License-Identifier: MIT OR 0BSD
# ---- adapters: examples/adapters/volt_NAME.h makes a library part of a volt program. NAME.c beside
# it is a short program; tests/adapters/NAME.c is the test, and tests/adapters/NAME.sh runs both
# against the real library and real servers. `make adapters` runs all, `make adapters ONLY=curl` one.
ADAPTERS := $(patsubst tests/adapters/%.sh,%,$(wildcard tests/adapters/*.sh))
# The forms in which a test is built. Valgrind runs the plain one.
ADAPTER_plain := -O2
ADAPTER_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
ADAPTER_tsan := -O1 -g -fsanitize=thread
ADAPTER_CFLAGS := -std=gnu11 -Wall -Wextra -I. -Itests/adapters -pthread
LIBS_openssl := -lssl -lcrypto
LIBS_mbedtls := -lmbedtls -lmbedx509 -lmbedcrypto
LIBS_curl := -lcurl
LIBS_hiredis := -lhiredis
LIBS_cares := -lcares
LIBS_pq := -lpq
CFLAGS_pq = $(shell pkg-config --cflags libpq)
LIBS_nghttp2 := -lnghttp2 -lssl -lcrypto
LIBS_glib := -lglib-2.0
CFLAGS_glib = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags glib-2.0))
LIBS_sd := -lsystemd

ADAPTER_CHECKS := $(addprefix adapter-,$(if $(ONLY),$(filter $(ONLY),$(ADAPTERS)),$(ADAPTERS)))
.PHONY: adapters
adapters:
	@rm -f $(ADAPTER_CHECKS:%=build/check/%)
	$(MAKE_ALL) $(ADAPTER_CHECKS:%=build/check/%)
	@echo 'adapters: $(words $(ADAPTER_CHECKS)) passed'

ADAPTER_HEADERS := volt.h $(wildcard examples/adapters/*.h tests/adapters/*.h)
# $1: form, $2: name
define ADAPTER_RULES
build/adapters/$1/$2: examples/adapters/$2.c $(ADAPTER_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $(ADAPTER_CFLAGS) $$(CFLAGS_$2) $(ADAPTER_$1) $$< -o $$@ $$(LIBS_$2)
build/adapters/$1/test_$2: tests/adapters/$2.c $(ADAPTER_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $(ADAPTER_CFLAGS) $$(CFLAGS_$2) $(ADAPTER_$1) $$< -o $$@ $$(LIBS_$2)
build/check/adapter-$2: build/adapters/$1/test_$2
endef
$(foreach a,$(ADAPTERS),$(foreach f,plain asan tsan,$(eval $(call ADAPTER_RULES,$f,$a))))
$(foreach a,$(ADAPTERS),$(eval build/check/adapter-$a: build/adapters/plain/$a))
build/check/adapter-%: tests/adapters/%.sh bench/tools/server.sh | $(NEEDS_OF_ADAPTERS)
	@mkdir -p $(@D)
	timeout 300 sh tests/adapters/$*.sh build/adapters
	@touch $@
build/check/adapter-pq: | need-lib-pq need-initdb need-openssl need-valgrind
need-initdb:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		echo 'initdb: not found; Debian package: postgresql'; exit 1; }
need-lib-pq:
	@pkg-config --exists libpq || { \
		echo 'libpq.pc: not found; Debian packages: pkg-config libpq-dev'; exit 1; }
build/check/adapter-nghttp2: | need-lib-nghttp2 need-lib-ssl need-h2load need-curl need-openssl need-valgrind
HEADER_nghttp2 := nghttp2/nghttp2.h
PACKAGE_lib-nghttp2 := libnghttp2-dev
build/check/adapter-sd: | need-lib-systemd need-valgrind
HEADER_systemd := systemd/sd-event.h
PACKAGE_lib-systemd := libsystemd-dev
