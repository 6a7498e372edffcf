# SPDX-License-Identifier: MIT OR 0BSD
# volt.h needs no build. This file runs its tests, checks and benchmarks; `make` names the targets.
CC ?= cc
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
VERSION := $(shell sed -n 's|^// volt.h \([0-9.]*\) - .*|\1|p' volt.h)

WARN := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef \
	-Wdouble-promotion -Wformat=2 -Wvla -Wnull-dereference -Wimplicit-fallthrough -Werror
WARN_C := -Wstrict-prototypes -Wmissing-prototypes
WARN_GCC := -Wcast-align=strict
WARN_CLANG := -Wcast-align -Wconditional-uninitialized

# The small build fills rings and turns wheels every few operations; the flags are those of volt.h's
# seam. Indices of a ring must not come back while a thief is stopped by the system or by the
# simulation, which is all that the ring cannot tolerate: only test_ring_caps has fewer of them.
SMALL := -DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=20 -DVOLT_OVERFLOW_CAP=2 \
	-DVOLT_WHEEL_BITS=2 -DVOLT_TICK_NS=1000000
# SINGLE has no threads; BARE has no descriptors either; RELEASE has no checks either, and only the
# two kept locks.
SINGLE := -DVOLT_SINGLE_THREAD
BARE := $(SINGLE) -DVOLT_NO_IO
RELEASE := $(SINGLE) -DNDEBUG
TEST_CFLAGS := -std=gnu11 -gdwarf-4 -Wall -Wextra -I. -Itests/lib -pthread
# A test program is named after its file: tests/api/chan.c makes test_chan.
TEST_DIRS := tests/unit tests/api tests/exhaustive tests/stress tests/regress
TEST_SOURCES := $(sort $(wildcard $(TEST_DIRS:%=%/*.c)))
TESTS := $(sort $(patsubst %.c,test_%,$(notdir $(TEST_SOURCES))))
vpath %.c $(TEST_DIRS)
BENCH_DIRS := bench/rows bench/servers bench/load
MAKEFLAGS += --no-builtin-rules
, := ,
GOLDEN := 01_hello 02_sleep_join 04_timeout 05_cancel 07_guest 11_pipeline 12_select 14_group \
	16_limits
HEADERS := volt.h $(wildcard tests/lib/*.h)
MAKE_ALL = @$(MAKE) --no-print-directory -k -j$(JOBS)

.PHONY: help demo test test-optimised check reject examples sanitize valgrind msan coverage odds \
	soak model model-full model-shipped model-mutants model-self fault fault-shipped sim sim-mutants fuzz \
	mutate bench cross kernels clocks size install clean
help:
	@echo 'make demo      runs the echo server under load: throughput, latency, counters'
	@echo 'make trace     the demo with tracing: build/trace.json for ui.perfetto.dev'
	@echo 'make test      all tests; needs a C compiler, make and libc'
	@echo 'make test-optimised  the tests of the normal form compiled with -O2, and their long parts'
	@echo 'make check     warnings, standards and optimisation levels with gcc and clang; clang-tidy,'
	@echo '               cppcheck; the rules of the source; make reject, a part of make examples'
	@echo 'make reject    programs that must not compile; each compiler must report the error'
	@echo 'make sanitize  the tests under AddressSanitizer + UBSan and under ThreadSanitizer, of gcc and'
	@echo '               of clang; make valgrind, make msan: a short subset each'
	@echo 'make harden    some tests with FORTIFY_SOURCE=3, stack protectors, CET, relro, LTO, CFI, trapv,'
	@echo '               as static-pie, with musl, with 32 bits; HARDENINGS="cfi musl": these'
	@echo 'make coverage  lines and branches of volt.h that the tests take; the others with the reason'
	@echo 'make odds      all at once with 64 workers, on one processor, stopped and continued, delayed'
	@echo 'make soak      an echo server under load for SECONDS=600; nothing may grow'
	@echo 'make sim       random programs on a simulated kernel; SEED=n repeats one; see tests/sim/main.c'
	@echo 'make sim-mutants  the seeds until the simulation finds each defect put into a copy of volt.h'
	@echo 'make model     explores all executions of the lock-free protocols that C++20 allows, except load'
	@echo '               buffering (tests/model/memory.c), at small bounds; make model-full: also the long'
	@echo '               scenarios, and all in the shipped form; make model-self: mutants of the checker'
	@echo 'make fault     makes each system call fail with each of its errors, in turn; FULL=1: all forms'
	@echo 'make fault-shipped  the same for programs as shipped, with strace and prlimit'
	@echo 'make examples  the examples with real clients and servers; make check has a part of these'
	@echo 'make adapters  examples/adapters with the real libraries and servers; ONLY="curl pq": these'
	@echo 'make fuzz      runs each fuzzer for SECONDS=60; needs clang with libFuzzer'
	@echo 'make mutate    puts one small defect at a time into volt.h: does a test notice? ONLY=regex'
	@echo '               SAMPLE=n SEED=s'
	@echo 'make defects   undone repairs, and other defects: does the test of each notice? ONE=name: see'
	@echo '               tests/mutate/defects.txt'
	@echo 'make bench     the benchmarks; ROW=S6, ROWS="S1 M2": these; needs hyperfine'
	@echo 'make bench-peers  every row but those of servers, and other runtimes: 21 rounds, into bench/results'
	@echo '               and bench/README.md; ROWS="S6 S8": these, RESUME=1: the rest; needs cargo, go, ...'
	@echo 'make bench-tls TLS echo servers: volt.h with OpenSSL, OpenSSL alone, Tokio and Go; needs taskset'
	@echo 'make bench-placement  the effect of each .placement on work from outside: ratios of seven rounds'
	@echo 'make bench-inside  the cost of counters, tracing, dumps and the stack pattern of a debug build, and'
	@echo '               the effect of a blocking call on the other tasks; needs valgrind'
	@echo 'make bench-gate  instructions, locked ones and system calls per operation, against'
	@echo '               the tables of bench/results: fails at more than 0.5 %; needs valgrind'
	@echo 'make bench-coherence  cache lines that move between 2 to 64 simulated processors'
	@echo 'make gdb-test  runs examples/gdb/volt.py on a stopped program, live and as a core file'
	@echo 'make dashboard the page of examples/15_dashboard.c in headless Chromium; pictures of it'
	@echo 'make size      text and data by processor and configuration; time to parse the header'
	@echo 'make cross     the tests on ARM, MIPS, PowerPC, RISC-V and S/390 under qemu, on i386, with musl;'
	@echo '               TARGETS="aarch64 musl": these; CROSS_QUICK=1: a few tests of each'
	@echo 'make kernels   the tests without the calls that older kernels lack or filters refuse'
	@echo 'make image     boots images with the echo server and a supervisor under qemu-system: ARM, MIPS,'
	@echo '               RISC-V, i386, Linux 4.4 to 6.12; fetches packages; IMAGES="armhf-6.1": these'
	@echo 'make clocks    timed tests with CLOCK_MONOTONIC at 12 days to 10 years; needs unshare'
	@echo 'make everything  all of these, long ones too, except those that have passed on these files; results'
	@echo '               go to tests/everything.tsv. ONLY="kernels cross-*": these; SHOW=1: prints the results'
	@echo 'make install   installs volt.h, volt.pc and a CMake package below $$(DESTDIR)$$(PREFIX)'
	@echo 'make dist      the archive of a release, build/dist/volt-$(VERSION).tar.gz; make recipes: those of'
	@echo '               Buildroot, Conan, Debian, Meson, OpenWrt, vcpkg and Yocto for it, in'
	@echo '               build/recipes; UPSTREAM=https://...: the address. See examples/packaging/README.md'
	@echo 'make packages  tries each recipe by its own tool; ONLY="cmake debian": these'
	@echo 'make doc       manual, functions and guides as HTML and man pages in build/doc; needs pandoc;'
	@echo '               make doc-check: looks at them, in Chromium, too'
	@echo 'make clean     removes build/'

FUZZERS := addr api

# ---- everything: all targets, including those too long for CI, with the result and commit of each:
# see tests/tools/everything.py. Variables of the command line are for that script alone.
.PHONY: everything
everything: need-python3
	@ONLY='$(ONLY)' SHOW='$(SHOW)' AGAIN='$(AGAIN)' SECONDS='$(SECONDS)' SAMPLE='$(SAMPLE)' \
		LIMITS='$(LIMITS)' python3 tests/tools/everything.py run

# ---- the other fragments are next to their sources; a package needs this file, volt.h, LICENSE and
# examples/packaging/.
FRAGMENTS := tests/test.mk tests/sanitize.mk tests/odds/odds.mk tests/sim/sim.mk tests/model/model.mk \
	examples/examples.mk tests/adapters/adapters.mk tests/projects/projects.mk \
	tests/fault/fault.mk tests/fuzz/fuzz.mk tests/mutate/mutate.mk \
	tests/static/compile/check.mk tests/platform/cross/cross.mk tests/image/image.mk \
	bench/bench.mk examples/packaging/packaging.mk
-include $(FRAGMENTS)

need-%:
	@command -v $* >/dev/null || { \
		echo '$*: not found; Debian package: $(or $(PACKAGE_$*),$*)'; exit 1; }
PACKAGE_clang++ := clang
PACKAGE_readelf := binutils
PACKAGE_objdump := binutils

install:
	mkdir -p '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/pkgconfig' \
		'$(DESTDIR)$(PREFIX)/share/volt'
	cp volt.h '$(DESTDIR)$(PREFIX)/include/volt.h'
	cp examples/packaging/share/* '$(DESTDIR)$(PREFIX)/share/volt'
	sed 's|@prefix@|$(PREFIX)|; s|@version@|$(VERSION)|' examples/packaging/volt.pc.in \
		> '$(DESTDIR)$(PREFIX)/share/pkgconfig/volt.pc'

clean:
	rm -rf build
.SECONDARY:
