# SPDX-License-Identifier: MIT OR 0BSD
# ---- examples: those that need more than libc run in `make check`, with real clients and servers,
# see tests/tools/examples.sh; `make examples` runs these alone.
EXAMPLE_CHECKS := $(addprefix example-,03_echo 06_http 09_redis 13_chat \
	10_from_cpp-g++ 10_from_cpp-clang++ 10_from_cpp-leaks 15_dashboard 15_dashboard-leaks)
EXAMPLE_NEEDS := need-curl need-wrk need-h2load need-nc need-redis-server need-python3 need-lib-ssl
PACKAGE_h2load := nghttp2-client
PACKAGE_nc := netcat-openbsd

examples: need-g++ need-clang++ $(EXAMPLE_NEEDS)
	@rm -f $(EXAMPLE_CHECKS:%=build/check/%) $(PROGRAM_CHECKS:%=build/check/%)
	$(MAKE_ALL) $(EXAMPLE_CHECKS:%=build/check/%) $(PROGRAM_CHECKS:%=build/check/%)
	@echo 'examples: $(words $(EXAMPLE_CHECKS) $(PROGRAM_CHECKS)) passed'

# ---- programs of full length: each has a script of its own, which runs it against real peers. They
# are part of `make examples` alone.
PROGRAMS := $(basename $(notdir $(wildcard examples/programs/*.c examples/programs/*.cpp)))
PROGRAM_CHECKS := $(PROGRAMS:%=program-%) example-08_proxy
build/check/program-%: build/programs/% tests/tools/programs/%.sh bench/tools/server.sh
	@mkdir -p $(@D)
	timeout 120 tests/tools/programs/$*.sh build/programs
	@touch $@
# The script serves both forms of the proxy.
build/check/example-08_proxy: build/examples/08_proxy tests/tools/programs/proxy.sh \
		bench/tools/server.sh
	@mkdir -p $(@D)
	timeout 120 tests/tools/programs/proxy.sh build/examples 08_proxy
	@touch $@
build/programs/%: examples/programs/%.c volt.h \
		$(wildcard examples/programs/*.h examples/adapters/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -I. -pthread $< -o $@ $(PROGRAM_LIBS)
build/programs/%: examples/programs/%.cpp volt.h
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O2 $(FLAGS_g++) $< -I. -pthread -o $@
build/programs/serial: examples/03_linger.h
build/programs/service: examples/06_http.h $(wildcard examples/programs/service/*.h)
build/check/program-service: $(patsubst %,tests/tools/programs/%,service.py hang.c late_line.c \
		peers.sh) tests/tools/accept_fails.c $(wildcard examples/programs/service/volt-echo.*)
# The parser of PyPI, from the network: the check of the service uses it if it is there.
build/openmetrics:
	python3 -m venv $@ && $@/bin/pip install -q prometheus_client || { rm -rf $@; exit 1; }

NEEDS_OF_broker := python3 nc
NEEDS_OF_dns := dig dnsmasq nc python3
NEEDS_OF_proxy := nginx curl nc socat haproxy strace openssl pgrep
NEEDS_OF_serial := python3 nc socat
NEEDS_OF_service := python3 curl valgrind
NEEDS_OF_shipper := python3 nc
NEEDS_OF_supervisor := strace valgrind pgrep
NEEDS_OF_udp_relay := socat iperf3 python3
NEEDS_OF_unix_server := python3 socat
$(foreach p,$(PROGRAMS),$(eval build/check/program-$p: | $(NEEDS_OF_$p:%=need-%)))
build/check/example-08_proxy: | $(NEEDS_OF_proxy:%=need-%)
build/check/program-dns: tests/tools/programs/dns.py
$(addprefix build/check/program-,broker serial shipper unix_server): tests/tools/programs/peers.sh
PACKAGE_dig := dnsutils
PACKAGE_dnsmasq := dnsmasq-base
PACKAGE_pgrep := procps

# ---- the numbered examples
build/check/example-%: build/examples/% tests/tools/examples.sh bench/tools/server.sh
	@mkdir -p $(@D)
	timeout 120 tests/tools/examples.sh build/examples $*
	@touch $@
EXAMPLE_SERVERS := 03_echo 06_http 13_chat 15_dashboard
$(EXAMPLE_SERVERS:%=build/examples/%): examples/03_server.h
$(EXAMPLE_SERVERS:%=build/check/example-%): tests/tools/servers.py build/examples/accept_fails.so
build/examples/accept_fails.so: tests/tools/accept_fails.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC $< -o $@
build/examples/03_echo build/examples/13_chat: examples/03_linger.h
build/examples/06_http: examples/06_http.h
build/examples/15_dashboard: examples/06_http.h examples/15_dashboard.h
build/check/example-15_dashboard build/check/example-15_dashboard-leaks: tests/tools/dashboard.py
build/check/example-15_dashboard-leaks: tests/tools/servers.py
build/examples/10_from_cpp-%: examples/10_from_cpp.cpp volt.h
	@mkdir -p $(@D)
	$* -std=c++17 -O2 $(FLAGS_$*) $< -I. -pthread -o $@

build/examples/10_from_cpp-leaks: examples/10_from_cpp.cpp volt.h
	@mkdir -p $(@D)
	g++ -std=c++17 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $< -I. -pthread -o $@

# with more tasks than an event holds
build/examples/15_dashboard-leaks: examples/15_dashboard.c examples/03_server.h \
		examples/06_http.h examples/15_dashboard.h volt.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -Wall -Wextra \
		-DSLEEPERS=6000 -I. -pthread $< -o $@

HEADER_ssl := openssl/ssl.h
PACKAGE_lib-ssl := libssl-dev
need-lib-%:
	@echo '#include <$(HEADER_$*)>' | $(CC) -E -x c - >/dev/null 2>&1 || { \
		echo '$(HEADER_$*): not found; Debian package: $(PACKAGE_lib-$*)'; exit 1; }
HEADER_curl := curl/curl.h
HEADER_hiredis := hiredis/async.h
HEADER_cares := ares.h
PACKAGE_lib-curl := libcurl4-openssl-dev
PACKAGE_lib-hiredis := libhiredis-dev
PACKAGE_lib-cares := libc-ares-dev
HEADER_sdt := sys/sdt.h
PACKAGE_lib-sdt := systemtap-sdt-dev
need-lib-glib:
	@pkg-config --exists glib-2.0 || { \
		echo 'glib-2.0.pc: not found; Debian packages: pkg-config libglib2.0-dev'; exit 1; }

# ---- examples as C++: the blocks of README.md, examples/README.md and volt.h with each compiler,
# and all of examples/.
# (type){ ... } is C; in C++ both compilers have it as an extension. g++ finds members without an
# initialiser also where those with one are named.
CXX_EXAMPLES := $(foreach c,g++ clang++,doc-$c \
	$(patsubst %,cxx-$c-%,$(wildcard examples/*.c examples/programs/*.c)))
CXX_EXAMPLE_FLAGS := -std=gnu++20 -Wno-pedantic -Wno-missing-field-initializers
CHECKS += $(CXX_EXAMPLES)

build/check/doc-%:
	@CC='$(subst g++,gcc,$(subst clang++,clang,$*))' CXX='$*' sh tests/static/doc.sh build/doc-$*
	@touch $@
build/check/cxx-%:
	@mkdir -p $(@D)
	$(firstword $(subst -, ,$*)) $(FLAGS_$(firstword $(subst -, ,$*))) $(CXX_EXAMPLE_FLAGS) \
		-I. -pthread -fsyntax-only $(patsubst $(firstword $(subst -, ,$*))-%,%,$*)
	@touch $@

# ---- gdb: examples/gdb/volt.py on a program whose tasks are known, see tests/tools/gdb.sh.
.PHONY: gdb-test
gdb-test: need-gdb need-gcc need-clang
	@sh tests/tools/gdb.sh build/gdb

# ---- dashboard: what a browser makes of examples/15_dashboard.c; pictures in build/dashboard.
.PHONY: dashboard
dashboard: need-chromium need-python3 build/examples/15_dashboard
	@timeout 300 python3 tests/tools/dashboard.py browser build/examples/15_dashboard build/dashboard
