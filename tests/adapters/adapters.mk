# SPDX-License-Identifier: MIT OR 0BSD
# ---- adapters: examples/adapters/volt_NAME.h makes a library part of a volt program. NAME.c beside
# it is a short program; tests/adapters/NAME.c is the test, and tests/adapters/NAME.sh runs both
# against the real library and real servers. `make adapters` runs all, with ONLY=curl one.
ADAPTERS := $(patsubst tests/adapters/%.sh,%,$(wildcard tests/adapters/*.sh))
# The forms in which a test is built. Valgrind runs the plain one.
ADAPTER_FORMS := plain asan tsan
ADAPTER_plain := -O2
ADAPTER_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
ADAPTER_tsan := -O1 -g -fsanitize=thread
ADAPTER_CFLAGS := -std=gnu11 -Wall -Wextra -I. -Itests/adapters -pthread
ADAPTER_HEADERS := volt.h $(wildcard examples/adapters/*.h tests/adapters/*.h) \
	$(wildcard tests/adapters/*/*/*.h)

# Of each: how it is linked, and the tools that its script needs.
LIBS_cares := -lcares
NEEDS_OF_cares := lib-cares dnsmasq
LIBS_curl := -lcurl
NEEDS_OF_curl := lib-curl curl nginx openssl
LIBS_glib := -lglib-2.0
CFLAGS_glib = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags glib-2.0))
NEEDS_OF_glib := lib-glib strace lws
LIBS_hiredis := -lhiredis
NEEDS_OF_hiredis := lib-hiredis redis-server
LIBS_mbedtls := -lmbedtls -lmbedx509 -lmbedcrypto
NEEDS_OF_mbedtls := lib-mbedtls openssl curl nc pgrep
HEADER_mbedtls := mbedtls/ssl.h
PACKAGE_lib-mbedtls := libmbedtls-dev
LIBS_nghttp2 := -lnghttp2 -lssl -lcrypto
NEEDS_OF_nghttp2 := lib-nghttp2 lib-ssl h2load curl openssl
HEADER_nghttp2 := nghttp2/nghttp2.h
PACKAGE_lib-nghttp2 := libnghttp2-dev
LIBS_openssl := -lssl -lcrypto
NEEDS_OF_openssl := lib-ssl openssl curl nc pgrep
LIBS_pq := -lpq
CFLAGS_pq = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libpq))
NEEDS_OF_pq := lib-pq initdb openssl
LIBS_sd := -lsystemd
NEEDS_OF_sd := lib-systemd
HEADER_systemd := systemd/sd-event.h
PACKAGE_lib-systemd := libsystemd-dev
# libubox is no package: the interface of uloop, over epoll. See uloop.sh
CFLAGS_uloop := -isystem tests/adapters/uloop
NEEDS_OF_uloop := strace
CFLAGS_lws = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags glib-2.0 libwebsockets))
LIBS_lws := -lwebsockets -lglib-2.0
need-lws:
	@pkg-config --exists libwebsockets && /usr/bin/python3 -c 'import websockets' || { \
		echo 'libwebsockets, python websockets: not found; Debian packages: pkg-config' \
			'libwebsockets-dev libwebsockets-evlib-glib python3-websockets'; exit 1; }
need-initdb:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		echo 'initdb: not found; Debian package: postgresql'; exit 1; }
need-lib-pq:
	@pkg-config --exists libpq || { \
		echo 'libpq.pc: not found; Debian packages: pkg-config libpq-dev'; exit 1; }

ADAPTER_CHECKS := $(addprefix adapter-,$(if $(ONLY),$(filter $(ONLY),$(ADAPTERS)),$(ADAPTERS)))
.PHONY: adapters
adapters:
	@rm -f $(ADAPTER_CHECKS:%=build/check/%)
	$(MAKE_ALL) $(ADAPTER_CHECKS:%=build/check/%)
	@echo 'adapters: $(words $(ADAPTER_CHECKS)) passed'

# $1: form, $2: name
define ADAPTER_RULES
build/adapters/$1/$2: examples/adapters/$2.c examples/03_server.h $(ADAPTER_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $(ADAPTER_CFLAGS) $$(CFLAGS_$2) $(ADAPTER_$1) $$< -o $$@ $$(LIBS_$2)
build/adapters/$1/test_$2: tests/adapters/$2.c $(ADAPTER_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $(ADAPTER_CFLAGS) $$(CFLAGS_$2) $(ADAPTER_$1) $$< -o $$@ $$(LIBS_$2)
endef
$(foreach a,$(ADAPTERS),$(foreach f,$(ADAPTER_FORMS),$(eval $(call ADAPTER_RULES,$f,$a))))
$(foreach a,$(ADAPTERS),$(eval build/check/adapter-$a: $(ADAPTER_FORMS:%=build/adapters/%/test_$a)))
$(foreach a,$(ADAPTERS),$(eval build/check/adapter-$a: build/adapters/plain/$a \
	build/adapters/strict/$a | $(addprefix need-,clang g++ clang++ valgrind $(NEEDS_OF_$a))))
build/check/adapter-%: tests/adapters/%.sh bench/tools/server.sh
	@mkdir -p $(@D)
	timeout 300 sh tests/adapters/$*.sh build/adapters
	@touch $@
# The programs are C++ as well, and have no warning that the numbered examples must not have.
build/adapters/strict/%: examples/adapters/%.c $(ADAPTER_HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(FLAGS_gcc) -O2 -I. -pthread $(CFLAGS_$*) -c $< -o $@.o
	clang -std=gnu11 $(FLAGS_clang) -I. -pthread $(CFLAGS_$*) -fsyntax-only $<
	g++ $(FLAGS_g++) $(CXX_EXAMPLE_FLAGS) -I. -pthread $(CFLAGS_$*) -fsyntax-only $<
	clang++ $(FLAGS_clang++) $(CXX_EXAMPLE_FLAGS) -I. -pthread $(CFLAGS_$*) -fsyntax-only $<
	@touch $@

# ---- TLS: one script and one test for both libraries; https.c by each of them
build/check/adapter-openssl: tests/adapters/tls/peers.sh build/adapters/plain/https_openssl
build/check/adapter-mbedtls: tests/adapters/tls/peers.sh build/adapters/plain/https_mbedtls
build/adapters/plain/https_mbedtls: TLS_FLAGS := -DHTTPS_MBEDTLS
build/adapters/plain/https_%: examples/adapters/https.c examples/03_server.h examples/06_http.h \
		$(ADAPTER_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(ADAPTER_CFLAGS) -O2 $(TLS_FLAGS) $< -o $@ $(LIBS_$*)
# ---- libwebsockets: a program over volt_glib.h, without a header of its own
$(foreach f,$(ADAPTER_FORMS),$(eval $(call ADAPTER_RULES,$f,lws)))
build/check/adapter-glib: build/adapters/plain/lws build/adapters/asan/lws build/adapters/strict/lws
build/check/adapter-curl: build/examples/06_http
