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

# The small build wraps rings and wheels every few operations; the flags are those of volt.h's seam.
SMALL := -DVOLT_TEST_SMALL -DVOLT_RING_CAP=4 -DVOLT_RING_INDEX_BITS=5 -DVOLT_OVERFLOW_CAP=2 \
	-DVOLT_WHEEL_BITS=2 -DVOLT_TICK_NS=1000000
# Without threads, and without descriptors as well.
SINGLE := -DVOLT_SINGLE_THREAD
BARE := $(SINGLE) -DVOLT_NO_IO
TEST_CFLAGS := -std=gnu11 -gdwarf-4 -Wall -Wextra -I. -pthread
TESTS := $(patsubst tests/%.c,%,$(sort $(wildcard tests/test_*.c)))
, := ,
GOLDEN := 01_hello 02_sleep_join 04_timeout 05_cancel 07_guest 11_pipeline 12_select 14_group
HEADERS := volt.h $(wildcard tests/*.h)
MAKE_ALL = @$(MAKE) --no-print-directory -k -j$(JOBS)

.PHONY: help demo test check reject examples sanitize valgrind msan coverage odds soak model \
	model-full model-shipped model-mutants model-self fault fault-shipped sim sim-mutants fuzz \
	mutate bench cross kernels clocks size install clean
help:
	@echo 'make demo      the echo server under load: throughput, latency, counters'
	@echo 'make test      all tests; needs a C compiler, make and libc'
	@echo 'make check     warnings, standards and optimisation levels with gcc and clang; clang-tidy,'
	@echo '               cppcheck, analyzers; the rules of the source; make reject, make examples'
	@echo 'make reject    programs that must not compile: each compiler must say what is wrong'
	@echo 'make sanitize  the tests under AddressSanitizer + UBSan and under ThreadSanitizer, of gcc and'
	@echo '               of clang; make valgrind, make msan: a short subset each'
	@echo 'make harden    some tests with FORTIFY_SOURCE=3, stack protectors, CET, relro, LTO, CFI, trapv,'
	@echo '               as static-pie, with musl, with 32 bits; HARDENINGS="cfi musl": these'
	@echo 'make coverage  lines and branches of volt.h that the tests take; what they do not take, and why'
	@echo 'make odds      all at once with 64 workers, on one processor, stopped and continued, delayed'
	@echo 'make soak      an echo server under load for SECONDS=600; nothing may grow'
	@echo 'make sim       random programs on a simulated kernel; SEED=n repeats one; see tests/sim/main.c'
	@echo 'make sim-mutants  how soon the simulation finds defects put into a copy of volt.h'
	@echo 'make model     the executions of the lock-free protocols that C++20 allows, at small bounds, but'
	@echo '               for load buffering: tests/model/memory.c; make model-full: the long scenarios'
	@echo '               too, and all as it is shipped'
	@echo 'make fault     every call fails, with every error, one after the other; FULL=1: all forms'
	@echo 'make examples  the examples with real clients, servers and libraries; part of make check'
	@echo 'make fuzz      SECONDS=60 of each fuzzer; needs clang with libFuzzer'
	@echo 'make mutate    one small defect at a time: which test notices? ONLY=regex SAMPLE=n SEED=s'
	@echo 'make defects   repairs taken out, and other defects: does the test notice that is there for'
	@echo '               each? ONE=name: see tests/defects.txt'
	@echo 'make bench     the benchmarks; ROW=S6, ROWS="S1 M2": these; needs hyperfine'
	@echo 'make bench-peers  every row beside other runtimes: ratios of 21 rounds, into bench/results.json'
	@echo '               and bench/README.md; ROWS="S6 S8": these, RESUME=1: the rest; with cargo, go and so on'
	@echo 'make bench-placement  what each .placement does to work from outside: ratios of seven rounds'
	@echo 'make bench-inside  what counters, tracing, dumps and the stack pattern of a debug build cost,'
	@echo '               and what a call that blocks does to the other tasks; needs valgrind'
	@echo 'make bench-gate  instructions, locked ones and system calls per operation, against'
	@echo '               bench/gate.txt: fails at 0.5 % more; needs valgrind'
	@echo 'make bench-coherence  cache lines that move between 2 to 64 simulated processors'
	@echo 'make gdb-test  what examples/gdb/volt.py shows of a stopped program, live and as a core file'
	@echo 'make dashboard the page of examples/15_dashboard.c in headless Chromium; pictures of it'
	@echo 'make size      text and data by processor and configuration; time to parse the header'
	@echo 'make cross     the tests on ARM, MIPS, PowerPC, RISC-V and S/390 under qemu, on i386, with musl;'
	@echo '               TARGETS="aarch64 musl": these; CROSS_QUICK=1: a few tests of each'
	@echo 'make kernels   the tests without the calls that older kernels lack or filters refuse'
	@echo 'make clocks    what waits, with CLOCK_MONOTONIC at 12 days to 10 years; needs unshare'
	@echo 'make everything  each of these, long ones too, as far as it has not passed on these files yet;'
	@echo '               kept in tests/everything.tsv. ONLY="kernels cross-*": these; SHOW=1: what there is'
	@echo 'make install   volt.h and volt.pc below $$(DESTDIR)$$(PREFIX)'
	@echo 'make clean     removes build/'

FUZZERS := addr api

# ---- test: each log is a target, so that as many run at once as there are processors. A log ends
# with "<name>: N passed, N failed, N skipped"; one that does not counts as a failure.
SINGLE_TESTS := brackets chan chan_forms chan_kinds compose compose_sync group guest misuse net \
	pause sync sync_kinds sync_stress task timers
BARE_TESTS := single timers
LOGS := $(TESTS:%=build/log/%) $(TESTS:%=build/log/small-%) $(GOLDEN:%=build/log/example-%) \
	$(SINGLE_TESTS:%=build/log/single-test_%) $(BARE_TESTS:%=build/log/bare-test_%) \
	$(FUZZERS:%=build/log/replay_%) build/log/doc build/log/rules build/log/semantics \
	build/log/any_thread build/log/load build/log/speed

test:
	@rm -rf build/log
	$(MAKE_ALL) $(LOGS) || true
	@$(call SUM,$(LOGS))

# Adds up the last lines of the logs named.
SUM = awk ' \
	function close_file() { if (name != "" && !ended) { \
		print name ": did not end with its summary"; f++ } } \
	BEGIN { for (i = 1; i < ARGC; i++) if ((getline line < ARGV[i]) < 0) { \
		print ARGV[i] ": not built or not run"; f++; ARGV[i] = "" } } \
	FNR == 1 { close_file(); name = FILENAME; ended = 0 } \
	{ last = $$0 } \
	/: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$$/ { \
		n = split($$0, w, " "); p += w[n - 5]; f += w[n - 3]; s += w[n - 1]; ended = 1 } \
	END { close_file(); printf "%d passed, %d failed", p, f; if (s) printf ", %d skipped", s; \
		print ""; exit f != 0 }' $(1)

# $(1) the program: runs it, keeps its output, shows it when it has ended.
RUN_TEST = mkdir -p $(@D) && { $(1) > $@.tmp 2>&1 || true; } && cat $@.tmp && mv $@.tmp $@

build/log/test_%: build/test_%
	@$(call RUN_TEST,$(RUN) $<)
build/log/small-test_%: build/small/test_%
	@$(call RUN_TEST,$(RUN) $<)
build/log/single-test_%: build/single/test_%
	@$(call RUN_TEST,$(RUN) $<)
build/log/bare-test_%: build/bare/test_%
	@$(call RUN_TEST,$(RUN) $<)
GOLDEN_LIMIT := $(shell command -v timeout >/dev/null && echo timeout 60)
build/log/example-%: build/examples/% examples/%.c
	@mkdir -p $(@D)
	@sed -n '/^\/\/ Expected output:/,/^[^\/]/s|^// ||p' examples/$*.c | sed 1d \
		> build/examples/$*.want
	@if $(GOLDEN_LIMIT) ./$< > build/examples/$*.out && \
		cmp build/examples/$*.out build/examples/$*.want; \
	then echo 'example $*: 1 passed, 0 failed, 0 skipped'; \
	else echo 'example $*: 0 passed, 1 failed, 0 skipped'; fi | tee $@
build/log/doc: volt.h README.md $(wildcard */README.md) tests/doc.sh tests/kernels.sh bench/gate.txt $(wildcard tests/reject/*)
	@$(call RUN_TEST,CC='$(CC)' CXX='$(CXX)' sh tests/doc.sh build/doc)
build/log/rules: volt.h tests/rules.sh
	@$(call RUN_TEST,sh tests/rules.sh volt.h)

build/log/load: build/bench/load build/bench/net_server build/bench/raw_epoll tests/load.sh
	@$(call RUN_TEST,sh tests/load.sh build/bench)

# What bench/README.md says of other runtimes is what was measured.
build/log/speed: bench/README.md tests/speed.py $(wildcard bench/*.py bench/results.json bench/speed.svg)
	@$(call RUN_TEST,if command -v python3 >/dev/null; then python3 tests/speed.py; \
		else echo 'speed: 0 passed$(,) 0 failed$(,) 1 skipped'; fi)

SEMANTICS := $(filter build/log/test_sync% build/log/test_chan% build/log/test_compose_sync,\
	$(TESTS:%=build/log/%))
build/log/semantics: volt.h tests/semantics.sh $(SEMANTICS)
	@$(call RUN_TEST,sh tests/semantics.sh volt.h $(SEMANTICS))

# What plays each two calls of any threads at once: see tests/any_thread.txt.
build/log/any_thread: volt.h tests/any_thread.txt tests/any_thread.sh $(TESTS:%=build/log/%) \
	$(wildcard tests/model/model_*.c tests/sim/*.h)
	@$(call RUN_TEST,sh tests/any_thread.sh volt.h $(TESTS:%=build/log/%))

build/log/replay_%: build/fuzz/replay_%
	@$(call RUN_TEST,$(RUN) $< tests/fuzz/corpus/$*)

# Once as it is used, optimised; the other forms not: their compiling takes a fifth of the time.
# Most of a test's compilation is that of the implementation. The tests of SHARED use the default
# seam and share one compilation for each form; the others have one of their own each.
SHARED := beside between chan chan_forms compose compose_sync group guest idle net outside pause \
	placement queues rare rescue shared stress sync sync_kinds sync_stress task timers token
build/unit/volt.h build/unit/unit.h: volt.h tests/unit.awk
	@mkdir -p $(@D)
	@awk -v part=$(if $(filter %/volt.h,$@),head,unit) -f tests/unit.awk volt.h > $@
# $(1) the form; $(2) where its programs are; $(3), $(4) flags of shared and of own compilations
define TEST_RULES
build/unit/$(1).o: build/unit/unit.h
	$$(CC) $$(TEST_CFLAGS) $(3) -DVOLT_IMPLEMENTATION -x c -c $$< -o $$@
$(SHARED:%=$(2)/test_%): $(2)/test_%: tests/test_%.c build/unit/$(1).o build/unit/volt.h $$(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) -Ibuild/unit $$(TEST_CFLAGS) $(3) $$< build/unit/$(1).o -o $$@
$(2)/test_%: tests/test_%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $$(TEST_CFLAGS) $(4) $$< -o $$@
endef
$(eval $(call TEST_RULES,normal,build,-O2,-O1))
$(eval $(call TEST_RULES,small,build/small,-O0 $$(SMALL),-O0 $$(SMALL)))
$(eval $(call TEST_RULES,single,build/single,-O0 $$(SINGLE),-O0 $$(SINGLE)))
$(eval $(call TEST_RULES,bare,build/bare,-O0 $$(BARE),-O0 $$(BARE)))
build/test_ring_caps build/small/test_ring_caps: tests/test_queues.c
build/examples/%: examples/%.c volt.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -I. -pthread $< $(EXAMPLE_LIBS) -o $@

# ---- sanitize: no suppressions. Thread sanitizer needs a stable address layout on some kernels.
RUN_TSAN := $(shell setarch -R true 2>/dev/null && echo setarch -R)
SAN_FLAGS := -O1 -fno-omit-frame-pointer
# unoptimised: no access is left out, and clang takes a sixth of the time
SAN_FLAGS_asan := -O0 -fsanitize=address,undefined -fno-sanitize-recover=all
SAN_FLAGS_tsan := -fsanitize=thread
# clang makes memory defined by what it sees written: the kernel's part is told by msan.h.
SAN_FLAGS_msan := -fsanitize=memory -fsanitize-memory-track-origins -fno-sanitize-recover=all \
	-DTEST_SEES_UNWRITTEN -include tests/msan.h
SANITIZERS ?= asan-gcc tsan-gcc asan-clang tsan-clang
SAN_LOGS = $(foreach s,$(SANITIZERS),$(TESTS:%=build/log/$s-%))
export ASAN_OPTIONS ?= detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1

sanitize: need-gcc need-clang
	@rm -f $(SAN_LOGS)
	$(MAKE_ALL) $(SAN_LOGS) RUN='env TEST_TIMEOUT_FACTOR=6' || true
	@$(call SUM,$(SAN_LOGS))

define SAN_RULES
build/log/$(1)-$(2)-%: build/$(1)-$(2)/%
	@$$(call RUN_TEST,$$(RUN) $(if $(filter tsan,$(1)),$$(RUN_TSAN)) $$<)
build/$(1)-$(2)/%: tests/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$(2) $$(TEST_CFLAGS) $$(SAN_FLAGS) $$(SAN_FLAGS_$(1)) $$< -o $$@
build/$(1)-$(2)/test_ring_caps: tests/test_queues.c
endef
$(foreach c,gcc clang,$(foreach s,asan tsan,$(eval $(call SAN_RULES,$s,$c))))
$(eval $(call SAN_RULES,msan,clang))

# ---- memory that nobody wrote, twice: by memcheck and by clang's memory sanitizer. Short programs
# that need no second processor to get on.
UNWRITTEN := test_word test_queues test_timers test_task test_group test_compose test_net test_misuse
MSAN_LOGS := $(UNWRITTEN:%=build/log/msan-clang-%)
VALGRIND_LOGS := $(UNWRITTEN:%=build/log/valgrind-%)
VALGRIND := valgrind --quiet --fair-sched=yes --leak-check=full --show-leak-kinds=all \
	--errors-for-leak-kinds=all --error-exitcode=99

msan: need-clang
	@rm -f $(MSAN_LOGS)
	$(MAKE_ALL) $(MSAN_LOGS) RUN='env TEST_TIMEOUT_FACTOR=6' || true
	@$(call SUM,$(MSAN_LOGS))
valgrind: need-valgrind
	@rm -f $(VALGRIND_LOGS)
	$(MAKE_ALL) $(VALGRIND_LOGS) RUN='env TEST_TIMEOUT_FACTOR=30' || true
	@$(call SUM,$(VALGRIND_LOGS))
build/log/valgrind-%: build/valgrind/%
	@$(call RUN_TEST,$(RUN) $(VALGRIND) $<)
build/valgrind/%: tests/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O1 -DTEST_SEES_UNWRITTEN -DTEST_IN_VALGRIND $< -o $@

# ---- coverage: all tests in both builds and the examples, see tests/coverage.sh. Functions that a
# program does not call are kept, so that they count as not run. A suite that is not in tests/test_*.c
# joins by a log in COVER_LOGS whose program is built with COVER_FLAGS below build/cover. What is there
# for VOLT_SINGLE_THREAD alone is not counted.
COVER_FLAGS := -O0 --coverage -fprofile-update=atomic -fkeep-static-functions \
	-fkeep-inline-functions -include tests/coverage.h
COVER_TESTS := $(filter-out test_single,$(TESTS))
COVER_LOGS := $(COVER_TESTS:%=build/log/cover-full-%) $(COVER_TESTS:%=build/log/cover-small-%) \
	$(GOLDEN:%=build/log/cover-example-%)

coverage: need-gcc need-gcov
	@mkdir -p build/cover
	@rm -f $(COVER_LOGS)
	@find build/cover -name '*.gcda' -exec rm -f {} +
	$(MAKE_ALL) $(COVER_LOGS) RUN='env TEST_TIMEOUT_FACTOR=20' || true
	@$(call SUM,$(COVER_LOGS)); tests=$$?; \
		sh tests/coverage.sh build/cover && exit $$tests

build/log/cover-%: build/cover/%
	@$(call RUN_TEST,$(RUN) $<)
build/log/cover-example-%: build/cover/examples/%
	@$(call RUN_TEST,$< && echo 'example $*: 1 passed$(,) 0 failed$(,) 0 skipped')
build/cover/full-%: tests/%.c $(HEADERS)
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $< -o $@
build/cover/small-%: tests/%.c $(HEADERS)
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $(SMALL) $< -o $@
build/cover/examples/%: examples/%.c volt.h tests/coverage.h
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $< -o $@
build/cover/full-test_ring_caps build/cover/small-test_ring_caps: tests/test_queues.c

# ---- harden: some tests under what distributions and security guides compile with, warnings being
# errors; tests/harden.sh looks for a mark of each flag in the programs. `make harden
# HARDENINGS='cfi musl'`: these only. 32 bits by a compiler of their own: gcc-multilib cannot be
# installed beside those of `make cross`.
HARDENINGS ?= distro-gcc distro-clang strict-gcc strict-clang lto-gcc lto-clang cfi static-pie musl \
	m32
HARDEN_TESTS := test_task test_net
HARDEN_LOGS = $(foreach h,$(HARDENINGS),$(patsubst %,build/log/harden-$h-%,$(HARDEN_TESTS) \
	$(if $(MARKS_$h),marks)))
HARDEN_DISTRO := -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection \
	-fcf-protection=full -fPIE -pie -Wl,-z,relro,-z,now,-z,noexecstack
HARDEN_STRICT := -fstack-protector-all -ftrivial-auto-var-init=pattern -ftrapv
HARDEN_distro-gcc := gcc $(HARDEN_DISTRO)
HARDEN_distro-clang := clang $(HARDEN_DISTRO)
HARDEN_strict-gcc := gcc $(HARDEN_STRICT)
HARDEN_strict-clang := clang $(HARDEN_STRICT)
HARDEN_lto-gcc := gcc -flto
HARDEN_lto-clang := clang -flto=thin -fuse-ld=lld
HARDEN_cfi := clang -fsanitize=cfi -flto -fvisibility=hidden -fuse-ld=lld
HARDEN_static-pie := gcc -static-pie
HARDEN_musl := musl-gcc -static
HARDEN_m32 := i686-linux-gnu-gcc -Wl,-dynamic-linker,/usr/i686-linux-gnu/lib/ld-linux.so.2 \
	-Wl,-rpath,/usr/i686-linux-gnu/lib
MARKS_distro-gcc := fortify fortify-3 stack-protector stack-clash cet pie relro now no-exec-stack
MARKS_distro-clang := $(MARKS_distro-gcc)
MARKS_strict-gcc := stack-protector pattern trapv
MARKS_strict-clang := $(MARKS_strict-gcc)
MARKS_lto-gcc := lto
MARKS_lto-clang := lto
MARKS_cfi := cfi lto
MARKS_static-pie := pie no-interpreter
MARKS_musl := musl no-interpreter
MARKS_m32 := elf32
.PHONY: harden
harden: need-readelf need-ld.lld $(foreach h,$(HARDENINGS),need-$(firstword $(HARDEN_$h)))
	@rm -f $(HARDEN_LOGS)
	$(MAKE_ALL) $(HARDEN_LOGS) || true
	@$(call SUM,$(HARDEN_LOGS))
PACKAGE_ld.lld := lld
PACKAGE_musl-gcc := musl-tools
define HARDEN_RULES
build/log/harden-$(1)-marks: build/harden/$(1)/test_task build/harden/$(1)/harden_probe
	@$$(call RUN_TEST,sh tests/harden.sh harden-$(1) $$^ $(MARKS_$(1)))
build/log/harden-$(1)-%: build/harden/$(1)/%
	@$$(call RUN_TEST,$$(RUN) $$<)
build/harden/$(1)/%: tests/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(HARDEN_$(1)) -std=gnu11 -O2 -Wall -Wextra -Werror -I. -pthread $$< -o $$@
endef
$(foreach h,$(HARDENINGS),$(eval $(call HARDEN_RULES,$h)))

# ---- odds: delays at the seam, see tests/odds/odds.h; about half a minute. soak: SECONDS=15 is its
# short form. Both print their seed.
ODDS := odds test_stress test_task
ODDS_LOGS := $(ODDS:%=build/log/odds-%)
SOAK_SECONDS = $(or $(SECONDS),600)

odds:
	@rm -f $(ODDS_LOGS)
	$(MAKE_ALL) JOBS=1 $(ODDS_LOGS) RUN='env TEST_TIMEOUT_FACTOR=6' || true
	@$(call SUM,$(ODDS_LOGS))
soak: build/odds/soak
	$< $(SOAK_SECONDS) $(SEED)

build/log/odds-%: build/odds/%
	@$(call RUN_TEST,$(RUN) $<)
build/odds/soak: tests/odds/soak.c volt.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 $< -o $@
build/odds/odds: tests/odds/odds.c tests/odds/odds.h $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 -include tests/odds/odds.h $< -o $@
build/odds/%: tests/%.c tests/odds/odds.h $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 -include tests/odds/odds.h $< -o $@

# ---- kernels: the tests where an old kernel or a filter refuses, see tests/old_kernel.h.
KERNELS := $(TESTS:%=build/kernels/%)

kernels:
	$(MAKE_ALL) $(KERNELS)
	@JOBS=$(JOBS) sh tests/kernels.sh build/kernels

build/kernels/%: tests/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O1 -include tests/old_kernel.h $< -o $@
build/kernels/test_ring_caps: tests/test_queues.c

# ---- clocks: what waits, far from the start of CLOCK_MONOTONIC and past counts at which numbers
# come round, see tests/clocks.sh. The longest two only here and there: test_steps where a count is
# passed; test_idle, which sees a wait that ends too early and begins again, behind one.
CLOCKS := 12_days past_12.4_days 24.8_days past_24.8_days 49.7_days past_49.7_days 10_years \
	past_8.7_years
CLOCK_TESTS := clocks $(addprefix test_,timers compose guest rescue sched task group public)
CLOCK_TESTS_past_24.8_days := test_steps
CLOCK_TESTS_past_49.7_days := test_steps
CLOCK_TESTS_24.8_days := test_idle
CLOCK_TESTS_10_years := test_idle
CLOCK_LOGS = $(foreach t,$(CLOCK_TESTS) $(CLOCK_TESTS_$(1)),build/log/clocks-$(1)-$t)

clocks: need-unshare build/clock_now
	@sh tests/clocks.sh can_enter '' build/clock_now
	@rm -f $(foreach c,$(CLOCKS),$(call CLOCK_LOGS,$c))
	$(MAKE_ALL) $(foreach c,$(CLOCKS),$(call CLOCK_LOGS,$c)) || true
	@$(foreach c,$(CLOCKS),$(call SUM,$(call CLOCK_LOGS,$c)) | \
		$(call CROSS_LINE,clocks $(subst _, ,$c));)
	@$(call SUM,$(foreach c,$(CLOCKS),$(call CLOCK_LOGS,$c))) > build/clocks.sum; failed=$$?; \
		tail -n 1 build/clocks.sum | $(call CROSS_LINE,clocks); exit $$failed
PACKAGE_unshare := util-linux

# $(1) a time
define CLOCK_RULES
build/log/clocks-$(1)-%: build/% build/clock_now
	@$$(call RUN_TEST,sh tests/clocks.sh $(1) $$< build/clock_now)
endef
$(foreach c,$(CLOCKS),$(eval $(call CLOCK_RULES,$c)))
build/clocks: tests/clocks.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 $< -o $@
build/clock_now: tests/clock_now.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $< -o $@

# ---- sim: the normal build has the even seeds, the small one the odd ones. The output is bounded.
# A simulated thief may be starved for as long as the indices of a ring take to come round, which is
# the one thing that the ring does not stand: the small build has more of them than a run has steps.
SIM_INDEX := -UVOLT_RING_INDEX_BITS -DVOLT_RING_INDEX_BITS=20
SIM_SOURCES := $(wildcard tests/sim/*.[ch])
SIM_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra $(SIM_FLAGS)
SIM_CAP := head -c 20000000
SIM_SECONDS = $(or $(SECONDS),$(if $(FULL),600,24))
FROM ?= $(if $(FULL),$(shell date +%s)000000,0)
SIM_ARGS := $(if $(TASKS),tasks=$(TASKS)) $(if $(OFF),off=$(OFF)) $(if $(CALM),calm=$(CALM)) \
	$(if $(PROGRAM),program=$(PROGRAM))

# fibers and fake stacks do not go together
SIM_RUN := env ASAN_OPTIONS=detect_stack_use_after_return=0

ifneq ($(SEED),)
sim: build/sim/sim-$(if $(filter 1 3 5 7 9,$(shell echo $(SEED) | tail -c 2)),small,normal)
	@{ $(SIM_RUN) $< seed=$(SEED) trace=$(or $(TRACE),0) $(SIM_ARGS) || touch $<.failed; } | \
		$(SIM_CAP); ! rm $<.failed 2>/dev/null
else
sim: build/sim/example build/sim/sim-normal build/sim/sim-small
	@$(SIM_RUN) build/sim/example
	@for build in build/sim/sim-normal build/sim/sim-small; do \
		{ $(SIM_RUN) $$build seconds=$$(($(SIM_SECONDS) / 2)) from=$(FROM) $(SIM_ARGS) || \
			touch $$build.failed; } | $(SIM_CAP); \
	done; ! rm build/sim/*.failed 2>/dev/null
endif

build/sim/example: $(SIM_SOURCES) volt.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) tests/sim/example.c -o $@
build/sim/sim-normal: $(SIM_SOURCES) volt.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) tests/sim/main.c -o $@
build/sim/sim-small: $(SIM_SOURCES) volt.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SMALL) $(SIM_INDEX) tests/sim/main.c -o $@

sim-mutants: $(SIM_SOURCES) volt.h tests/sim/mutants.sh
	@CC='$(CC)' sh tests/sim/mutants.sh volt.h build/sim/mutants $(MUTANT)

# ---- model: the weak-memory model checker, see tests/model/vmc.h. The checker itself is plain C;
# scenarios are compiled with -fsanitize=thread and linked with tests/model/tsan.c in place of the
# sanitizer's library. objcopy gathers their statics in sections that the checker saves and restores,
# and sends their memset and memcpy to it.
#   make model ONE=name                explores one scenario
#   make model REPLAY='name:choices'   executes one path of it and prints every event
MODEL_CC ?= $(shell command -v gcc >/dev/null && echo gcc || echo clang)
MODEL_PARTS := memory shadow search fiber world kernel tsan report main
LITMUS_PARTS := litmus_table litmus_axioms
MODEL_FILES := $(patsubst tests/model/%.c,%,$(sort $(wildcard tests/model/model_*.c)))
MODEL_CFLAGS := -std=gnu11 -gdwarf-4 -Itests/model -I. -fno-pie
MODEL_WARN_gcc := $(WARN) $(WARN_C) $(WARN_GCC)
MODEL_WARN_clang := $(WARN) $(WARN_C) $(WARN_CLANG)
MODEL_HOOKED := -O0 -fsanitize=thread -fno-builtin
MODEL_HOOKED_gcc := -Wno-tsan
MODEL_OBJCOPY := objcopy --rename-section .data=model_data \
	--rename-section .bss=model_bss,alloc --redefine-sym memset=vmc_memset \
	--redefine-sym memcpy=vmc_memcpy --redefine-sym memmove=vmc_memmove
MODEL_PROGRAMS = $(MODEL_FILES:%=build/model/$(MODEL_CC)/%)
MODEL_SHIPPED = $(patsubst %,build/model/$(MODEL_CC)-shipped/%,\
	$(filter-out model_litmus model_world,$(MODEL_FILES)))
MODEL_EXPECTED := tests/model/expected.txt
MODEL_SUM = awk '/^[a-z_]+: [0-9]+ passed, [0-9]+ failed$$/ { p += $$2; f += $$4 } \
	END { printf "$@: %d passed, %d failed\n", p, f; exit !p || f }' build/log/$@/*

model: $(MODEL_PROGRAMS)
ifdef REPLAY
	@for p in $^; do ./$$p -r '$(REPLAY)' || exit 1; done
else
	@sed -n 's/^\([a-z][a-z0-9_]*\)\t.*/\1/p' $(MODEL_EXPECTED) | while read s; do \
		grep -q "^SCENARIO($$s[,)]" tests/model/model_*.c || \
			{ echo "$(MODEL_EXPECTED): no scenario $$s"; exit 1; }; \
	done
	@rm -rf build/log/$@; mkdir -p build/log/$@
	@for p in $^; do \
		./$$p $(MODEL_FLAGS) -e $(MODEL_EXPECTED) $(ONE) | tee build/log/$@/$${p##*/}; \
	done
	@$(MODEL_SUM)
endif
# As it is shipped, without assertions: they are atomic operations more, and one may acquire what
# the code should. Other graphs than those of expected.txt.
model-shipped: $(MODEL_SHIPPED)
	@rm -rf build/log/$@; mkdir -p build/log/$@
	@for p in $^; do ./$$p $(ONE) | tee build/log/$@/$${p##*/}; done
	@$(MODEL_SUM)
model-full:
	@$(MAKE) --no-print-directory model MODEL_FLAGS=-l
	@$(MAKE) --no-print-directory model-shipped

# Defects of volt.h that a scenario must catch; defects of the checker that a litmus test must catch.
model-mutants: $(MODEL_PARTS:%=build/model/$(MODEL_CC)/%.part.o)
	@JOBS=$(JOBS) sh tests/model/mutants.sh build/model/$(MODEL_CC) $(MODEL_CC) $(ONE)
model-self: build/model/$(MODEL_CC)/model_litmus
	@sh tests/model/self.sh build/model/$(MODEL_CC) $(MODEL_CC)

define MODEL_RULES
build/model/$(1)/%.part.o: tests/model/%.c $(wildcard tests/model/*.h)
	@mkdir -p $$(@D)
	@echo '$(1) $$<'
	@$(1) $(MODEL_CFLAGS) $(MODEL_WARN_$(1)) -O2 -c $$< -o $$@
build/model/$(1)/%.o: tests/model/%.c $(wildcard tests/model/*.h) volt.h
	@mkdir -p $$(@D)
	@echo '$(1) -fsanitize=thread $$<'
	@$(1) $(MODEL_CFLAGS) $(MODEL_WARN_$(1)) $(MODEL_HOOKED) $(MODEL_HOOKED_$(1)) \
		-c $$< -o $$@
	@$(MODEL_OBJCOPY) $$@
build/model/$(1)-shipped/%.o: tests/model/%.c $(wildcard tests/model/*.h) volt.h
	@mkdir -p $$(@D)
	@echo '$(1) -fsanitize=thread -DVOLT_DEBUG=0 $$<'
	@$(1) $(MODEL_CFLAGS) $(MODEL_WARN_$(1)) $(MODEL_HOOKED) $(MODEL_HOOKED_$(1)) \
		-DVOLT_DEBUG=0 -c $$< -o $$@
	@$(MODEL_OBJCOPY) $$@
build/model/$(1)-shipped/model_%: build/model/$(1)-shipped/model_%.o \
	$(MODEL_PARTS:%=build/model/$(1)/%.part.o)
	@$(1) -no-pie $$^ -o $$@
build/model/$(1)/model_litmus: $(LITMUS_PARTS:%=build/model/$(1)/%.part.o)
build/model/$(1)/model_%: build/model/$(1)/model_%.o $(MODEL_PARTS:%=build/model/$(1)/%.part.o)
	@$(1) -no-pie $$^ -o $$@
endef
$(foreach c,gcc clang,$(eval $(call MODEL_RULES,$c)))

# ---- examples: those that need more than libc run in `make check`, with real clients, servers and
# libraries, see tests/examples.sh; `make examples` runs these alone.
EXAMPLE_CHECKS := $(addprefix example-,03_echo 06_http 08_curl 09_redis 13_chat 16_cares 17_glib \
	10_from_cpp-g++ 10_from_cpp-clang++ 10_from_cpp-leaks 15_dashboard 15_dashboard-leaks)
GLIB_CFLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags glib-2.0 2>/dev/null))
EXAMPLE_NEEDS := need-curl need-wrk need-h2load need-nc need-redis-server need-python3 \
	need-lib-curl need-lib-hiredis need-lib-cares need-lib-glib
PACKAGE_h2load := nghttp2-client
PACKAGE_nc := netcat-openbsd

examples: need-g++ need-clang++ $(EXAMPLE_NEEDS)
	@rm -f $(EXAMPLE_CHECKS:%=build/check/%)
	$(MAKE_ALL) $(EXAMPLE_CHECKS:%=build/check/%)
	@echo 'examples: $(words $(EXAMPLE_CHECKS)) passed'
build/check/example-%: build/examples/% tests/examples.sh bench/server.sh
	@mkdir -p $(@D)
	timeout 120 tests/examples.sh build/examples $*
	@touch $@
build/check/example-08_curl: build/examples/06_http
EXAMPLE_SERVERS := 03_echo 06_http 13_chat 15_dashboard
$(EXAMPLE_SERVERS:%=build/examples/%): examples/03_server.h
$(EXAMPLE_SERVERS:%=build/check/example-%): tests/servers.py build/examples/accept_fails.so
build/examples/accept_fails.so: tests/accept_fails.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC $< -o $@
build/examples/06_http: examples/06_http.h
build/examples/15_dashboard: examples/06_http.h examples/15_dashboard.h
build/check/example-15_dashboard build/check/example-15_dashboard-leaks: tests/dashboard.py
build/check/example-15_dashboard-leaks: tests/servers.py
build/examples/16_cares: examples/16_name_server.h
build/examples/08_curl: EXAMPLE_LIBS := -lcurl
build/examples/09_redis: EXAMPLE_LIBS := -lhiredis
build/examples/16_cares: EXAMPLE_LIBS := -lcares
build/examples/17_glib: EXAMPLE_LIBS = $(GLIB_CFLAGS) -lglib-2.0
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

# ---- fault: see tests/fault/fault.c. FULL=1: all workers, small bounds, the address sanitizer, and
# the programs as they are shipped, under strace and prlimit. ONE='...': one run, by its line.
FAULT_SRC := $(wildcard tests/fault/*.h) tests/fault/fault.c volt.h
FAULT_FULL := --full $(if $(SCENARIO),--scenario $(SCENARIO))

ifdef ONE
fault: build/fault/plain
	$< --one $(ONE)
else ifdef FULL
fault: build/fault/plain build/fault/small build/fault/asan fault-shipped
	build/fault/plain $(FAULT_FULL)
	build/fault/small $(FAULT_FULL)
	TEST_TIMEOUT_FACTOR=6 build/fault/asan $(FAULT_FULL)
else
fault: build/fault/plain
	$<
endif

fault-shipped: build/examples/02_sleep_join build/bench/echo_server build/bench/load
	tests/fault/shipped.sh build

build/fault/plain: $(FAULT_SRC)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 tests/fault/fault.c -o $@
build/fault/small: $(FAULT_SRC)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O1 $(SMALL) -DVOLT_EVENTS=2 tests/fault/fault.c -o $@
build/fault/asan: $(FAULT_SRC)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SAN_FLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all \
		tests/fault/fault.c -o $@

# ---- fuzz: saved inputs run in `make test`, too. What a run finds stays in build/fuzz/found-<name>.
FUZZ_CFLAGS := -std=gnu11 -g -O1 -Wall -Wextra -I. -pthread
FUZZ_SECONDS = $(or $(SECONDS),60)
FUZZ_LEN_addr := 160
FUZZ_LEN_api := 600

fuzz: need-clang $(FUZZERS:%=build/fuzz/fuzz_%)
	@for f in $(FUZZERS); do \
		$(MAKE) --no-print-directory -s fuzz-$$f || exit 1; \
	done
fuzz-%: build/fuzz/fuzz_%
	@mkdir -p build/fuzz/found-$*
	@$< -max_total_time=$(FUZZ_SECONDS) -max_len=$(FUZZ_LEN_$*) -len_control=0 -timeout=20 \
		-artifact_prefix=build/fuzz/ -print_final_stats=1 build/fuzz/found-$* \
		tests/fuzz/corpus/$* > build/fuzz/$*.log 2>&1 || \
		{ grep -v '^#' build/fuzz/$*.log | head -n 60; echo 'fuzz $*: failed'; exit 1; }
	@awk '/number_of_executed_units/ { n = $$2 } /average_exec_per_sec/ { r = $$2 } \
		/cov: / { for (i = 1; i < NF; i++) if ($$i == "cov:") c = $$(i + 1) } \
		END { printf "fuzz %-5s %9d inputs, %6d a second, %5d edges, no failure\n", \
			"$*", n, r, c }' build/fuzz/$*.log
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz.h volt.h
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $< -o $@ || \
		{ echo 'libFuzzer: Debian package libclang-rt-14-dev'; exit 1; }
build/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c tests/fuzz/fuzz.h volt.h
	@mkdir -p $(@D)
	$(CC) $(FUZZ_CFLAGS) $< tests/fuzz/replay.c -o $@

# ---- mutate: small defects of volt.h that some test must notice, see tests/mutate/mutate.py.
mutate: need-python3 $(MODEL_PARTS:%=build/model/gcc/%.part.o)
	@ONLY='$(ONLY)' SAMPLE='$(SAMPLE)' SEED='$(SEED)' RECHECK='$(RECHECK)' LIST='$(LIST)' \
		JOBS='$(JOBS)' python3 tests/mutate/mutate.py

# ---- defects: made by hand, each with the test that must notice it, see tests/defects.sh.
.PHONY: defects
defects:
	@CC='$(CC)' JOBS='$(JOBS)' sh tests/defects.sh build/defects $(ONE)

# ---- check: one stamp per compilation. hdr-<compiler>-<standard>: the header alone;
# impl-<compiler>-<standard>-<optimisation>: the implementation; unit-<compiler>-<file>: programs.
C_STDS := c99 c11 c17 c2x
CXX_STDS := c++11 c++17 c++20
OPTS := O0 O2 Os O3 flto
IMPL_C_STDS := gnu99 gnu11 c17 c2x
# Every standard and every level; with FULL=1 each with each.
IMPLS := $(if $(FULL),$(foreach o,$(OPTS),$(IMPL_C_STDS:%=%-$o)),$(OPTS:%=gnu11-%) \
	$(patsubst %,%-O2,$(filter-out gnu11,$(IMPL_C_STDS))))
UNITS := $(TESTS:%=tests/%.c) tests/fault/fault.c tests/clocks.c tests/clock_now.c \
	tests/harden_probe.c \
	$(sort $(wildcard examples/*.c bench/*.c bench/coherence/*.c tests/fuzz/*.c tests/odds/*.c tests/sim/*.c))
CHECKS := $(foreach c,gcc clang,$(C_STDS:%=hdr-$c-%) \
	$(IMPLS:%=impl-$c-%) $(UNITS:%=unit-$c-%)) \
	$(foreach c,g++ clang++,$(CXX_STDS:%=hdr-$c-%) $(OPTS:%=impl-$c-c++17-%)) cppcheck rules fits \
	tidy analyzer-gcc analyzer-clang $(EXAMPLE_CHECKS)
LANG_gcc := c
LANG_g++ := c++
FLAGS_gcc := $(WARN) $(WARN_C) $(WARN_GCC) -x c
FLAGS_clang := $(WARN) $(WARN_C) $(WARN_CLANG) -x c
FLAGS_g++ := $(WARN) $(WARN_GCC) -x c++
FLAGS_clang++ := $(WARN) $(WARN_CLANG) -x c++
word-of = $(word $(1),$(subst -, ,$*))

check: need-gcc need-g++ need-clang need-clang++ need-cppcheck need-clang-tidy need-scan-build \
	need-readelf need-lib-sdt $(EXAMPLE_NEEDS)
	@rm -rf build/check
	@mkdir -p build/check
	@printf '#include "volt.h"\n#include "volt.h"\nint volt_user(void);\n' > build/check/hdr.c
	@printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' > build/check/impl.c
	@printf '%s\n' '#include "volt.h"' 'typedef struct { volt_frame frame; } unit;' \
		'static volt_poll unit_run(volt_cx *cx, void *arg) {' 'unit *u = (unit *)arg;' \
		'VOLT_BEGIN(cx, u);' 'VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));' 'VOLT_END(0);' '}' \
		'int main(void) { static unit u; return volt_run(NULL, unit_run, &u); }' \
		> build/check/main.c
	$(MAKE_ALL) $(CHECKS:%=build/check/%)
	@echo 'check: $(words $(CHECKS)) passed'

build/check/hdr-%:
	$(call word-of,1) -std=$(call word-of,2) $(FLAGS_$(call word-of,1)) -I. -fsyntax-only \
		build/check/hdr.c
	@touch $@
# gcc warns at link time under -flto, so there a whole program is built.
build/check/impl-%:
	$(call word-of,1) -std=$(call word-of,2) -$(call word-of,3) $(FLAGS_$(call word-of,1)) \
		$(if $(findstring flto,$*),-O2) -I. -pthread -c build/check/impl.c -o $@.o
	@case $* in g*-flto) \
		$(call word-of,1) -O2 -flto $(WARN) -I. -pthread -x $(LANG_$(call word-of,1)) \
			build/check/main.c -x none $@.o -o $@.exe;; \
	esac
	@touch $@
# gcc sees some of what it warns of by its optimiser, clang nothing. Tests are many, and all carry
# volt.h, which the others show to it: unoptimised.
UNIT_LEVEL = $(if $(findstring /test_,$*),-O0,-O2)
build/check/unit-%:
	@mkdir -p $(@D)
	$(firstword $(subst -, ,$*)) -std=gnu11 $(FLAGS_$(firstword $(subst -, ,$*))) -I. -pthread \
		$(if $(findstring glib,$*),$(GLIB_CFLAGS)) \
		$(if $(findstring clang-,$*),-fsyntax-only,$(UNIT_LEVEL) -o $@.o -c) \
		$(patsubst $(firstword $(subst -, ,$*))-%,%,$*)
	@touch $@
build/check/cppcheck:
	cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 -DVOLT_IMPLEMENTATION -D__linux__ -D__x86_64__ \
		-D__GNUC__=12 -D__SIZEOF_POINTER__=8 volt.h
	@touch $@
# All that clang-tidy knows of bugs, less what says nothing about volt.h:
TIDY := -*,bugprone-*,cert-*,clang-analyzer-*,concurrency-*,misc-*,performance-*,portability-*
TIDY += -clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling # memcpy_s: no libc has it
TIDY += -clang-analyzer-optin.performance.Padding   # cache lines are kept apart
TIDY += -bugprone-easily-swappable-parameters       # lengths and capacities are both numbers
TIDY += -bugprone-macro-parentheses                 # a type cannot stand in parentheses
TIDY += -bugprone-reserved-identifier,-cert-dcl37-c,-cert-dcl51-cpp # _GNU_SOURCE
TIDY += -misc-no-recursion        # volt__shield_raise: as deep as shields are nested, 253 at most
TIDY += -performance-no-int-to-ptr                  # tags in the low bits of pointers
space := $(subst ,, )
build/check/tidy:
	clang-tidy --quiet --warnings-as-errors='*' --header-filter='volt\.h' \
		--checks='$(subst $(space),$(,),$(strip $(TIDY)))' build/check/impl.c -- -std=gnu11 -I.
	@touch $@
build/check/analyzer-gcc:
	gcc -std=gnu11 -O1 -fanalyzer -Werror -I. -c build/check/impl.c -o $@.o
	@touch $@
build/check/analyzer-clang:
	scan-build --status-bugs -o $@.reports clang -std=gnu11 -I. -c build/check/impl.c -o $@.o
	@touch $@
build/check/rules build/check/fits: build/check/%: volt.h tests/%.sh
	sh tests/$*.sh volt.h
	@touch $@

need-%:
	@command -v $* >/dev/null || { \
		echo '$*: not found; Debian package: $(or $(PACKAGE_$*),$*)'; exit 1; }
PACKAGE_clang++ := clang
PACKAGE_readelf := binutils
PACKAGE_objdump := binutils
PACKAGE_scan-build := clang-tools perl

# ---- reject and compile: parts of check with scripts of their own, which say what they do.
# Every warning of clang, less those that say nothing about volt.h:
EVERY := -Weverything
EVERY += -Wno-padded                      # layouts are chosen, and asserted
EVERY += -Wno-declaration-after-statement # C99 has it
EVERY += -Wno-disabled-macro-expansion    # glibc: \#define EPOLLIN EPOLLIN
EVERY += -Wno-used-but-marked-unused      # the seam's functions: a test may replace them
EVERY += -Wno-c++98-compat-pedantic       # C++11 is asked for, and its attributes are C23's
EVERY_CXX := -Wno-reserved-identifier     # volt__x: private, and free in C
EVERY_CXX += -Wno-old-style-cast          # the text is C
EVERY_CXX += -Wno-zero-as-null-pointer-constant
CCS := clang++ g++ clang gcc
REJECTS := $(CCS:%=reject-%)
CHECKS += programs above_begin $(REJECTS) $(CCS:%=orders-%) $(CCS:%=builds-%) $(CCS:%=less-%) every-c99 every-gnu11 every-c2x \
	every-c++11 every-c++17 every-c++20

reject: need-gcc need-g++ need-clang need-clang++
	@rm -f $(REJECTS:%=build/check/%)
	$(MAKE_ALL) $(REJECTS:%=build/check/%)
build/check/reject-%:
	@mkdir -p $(@D)
	@sh tests/reject/run.sh $*
	@touch $@
build/check/orders-%:
	@sh tests/compile/orders.sh $* build/check/files-of-$(@F) $(FLAGS_$*) -I.
	@touch $@
build/check/builds-%:
	@sh tests/compile/builds.sh $* build/check/files-of-$(@F) $(FLAGS_$*)
	@touch $@
build/check/less-%:
	@sh tests/compile/less.sh $* build/check/files-of-$(@F) $(FLAGS_$*)
	@touch $@
# Locals above VOLT_BEGIN, which no compiler warns of; not where a test is about such a mistake.
BEGINS = $(filter-out tests/test_misuse.c tests/reject/% tests/compile/%,\
	$(wildcard volt.h examples/*.[ch] examples/*.cpp bench/*.[ch] tests/*.[ch] tests/*/*.[ch]))
build/check/above_begin:
	@sh tests/above_begin.sh $(BEGINS)
	@mkdir -p $(@D)
	@sh tests/compile/above_begin.sh
	@touch $@
build/check/programs:
	@sh tests/compile/programs.sh build/check/files-of-$(@F) $(WARN)
	@touch $@
# The header, a unit that uses it, and the implementation where the standard lets it compile.
EVERY_FILES := -DUNIT=first -I. -fsyntax-only build/check/hdr.c tests/compile/unit.c
build/check/every-c++%:
	clang++ -std=c++$* $(strip $(EVERY) $(EVERY_CXX)) -Werror -x c++ $(EVERY_FILES) \
		$(if $(filter-out 11,$*),build/check/impl.c)
	@touch $@
build/check/every-%:
	clang -std=$* $(strip $(EVERY)) -Werror $(EVERY_FILES) \
		$(if $(filter-out c99,$*),build/check/impl.c)
	@touch $@

# ---- cross: the tests on other processors under qemu's user mode, and with another C library. i386
# and musl run as they are. What cannot work on a target stands in tests/cross/skips.txt.
#   make cross TARGETS='aarch64 musl'   these only
#   make cross CROSS_QUICK=1            all is compiled, without optimisation; some tests run
CROSS_ALL := aarch64 armhf armel mipsel mips powerpc s390x riscv64 i386 musl
TARGETS ?= $(CROSS_ALL)
CROSS_TOOLS_aarch64 := aarch64-linux-gnu
CROSS_TOOLS_armhf := arm-linux-gnueabihf
CROSS_TOOLS_armel := arm-linux-gnueabi
CROSS_TOOLS_mipsel := mipsel-linux-gnu
CROSS_TOOLS_mips := mips-linux-gnu
CROSS_TOOLS_powerpc := powerpc-linux-gnu
CROSS_TOOLS_s390x := s390x-linux-gnu
CROSS_TOOLS_riscv64 := riscv64-linux-gnu
CROSS_TOOLS_i386 := i686-linux-gnu
CROSS_TOOLS_musl := x86_64-linux-musl
CROSS_QEMU_aarch64 := qemu-aarch64
CROSS_QEMU_armhf := qemu-arm
CROSS_QEMU_armel := qemu-arm
CROSS_QEMU_mipsel := qemu-mipsel
CROSS_QEMU_mips := qemu-mips
CROSS_QEMU_powerpc := qemu-ppc
CROSS_QEMU_s390x := qemu-s390x
CROSS_QEMU_riscv64 := qemu-riscv64
# one of the 32-bit targets with a 64-bit time_t and off_t, the others as their C library has them
CROSS_FLAGS_armhf := -mthumb -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
CROSS_FLAGS_armel := -march=armv5te
CROSS_LINK_i386 := -Wl,-dynamic-linker,/usr/i686-linux-gnu/lib/ld-linux.so.2 \
	-Wl,-rpath,/usr/i686-linux-gnu/lib
CROSS_LINK_musl := -static
CROSS_STDS_musl := gnu99 c11 c17 c2x
CROSS_LEVEL := $(if $(CROSS_QUICK),O0,O2)
CROSS_RUNS := $(if $(CROSS_QUICK),test_word test_queues test_timers test_task test_net,$(TESTS))
CROSS_LOGS = $(foreach t,$(1),$(patsubst %,build/log/cross-$t-%,compile $(TESTS)))

# Which tests were skipped where, and why.
CROSS_SKIPPED = grep -Hs '^  skip  ' $(call CROSS_LOGS,$(TARGETS)) | \
	sed -E 's/^[^-]*-([^-]*)-[^:]*:  skip  ([^ ]+) +([0-9.]+ s  )?/\1 \2: /' | \
	awk '{ on = $$1; sub(/^[^ ]+ /, ""); where[$$0] = where[$$0] " " on } \
		END { for (what in where) print "skipped on" where[what] ": " what }' | sort

# The last line is the sum; those before it name the logs that lack theirs.
CROSS_LINE = sed '$$s/^/$(1): /; $$s/failed$$/&, 0 skipped/'

cross: $(foreach t,$(TARGETS),need-$(CROSS_TOOLS_$t)-gcc \
	$(if $(CROSS_QEMU_$t),need-$(CROSS_QEMU_$t)))
	@rm -f $(call CROSS_LOGS,$(TARGETS))
	$(MAKE_ALL) $(call CROSS_LOGS,$(TARGETS)) || true
	@$(CROSS_SKIPPED)
	@$(foreach t,$(TARGETS),$(call SUM,$(call CROSS_LOGS,$t)) | $(call CROSS_LINE,cross $t);)
	@$(call SUM,$(call CROSS_LOGS,$(TARGETS))) > build/cross/sum; failed=$$?; \
		tail -n 1 build/cross/sum | $(call CROSS_LINE,cross); exit $$failed

PACKAGE_$(CROSS_TOOLS_musl)-gcc := musl-tools
# $(1) a target
define CROSS_RULES
PACKAGE_$(CROSS_TOOLS_$(1))-gcc ?= gcc-$(CROSS_TOOLS_$(1))
$(if $(CROSS_QEMU_$(1)),PACKAGE_$(CROSS_QEMU_$(1)) := qemu-user)
CROSS_CC_$(1) := $(CROSS_TOOLS_$(1))-gcc $(CROSS_FLAGS_$(1)) $(WARN) $(WARN_C) $(WARN_GCC)
build/log/cross-$(1)-compile: volt.h
	@$$(call RUN_TEST,sh tests/cross/compile.sh build/cross/compile-$(1) \
		'$(or $(CROSS_STDS_$(1)),gnu11)' $$(CROSS_CC_$(1)))
build/log/cross-$(1)-%: build/cross/$(CROSS_LEVEL)/$(1)/%
	@sed -nE 's/^($(1)|$(if $(CROSS_QEMU_$(1)),qemu)) $$* //p' tests/cross/skips.txt > $$<.skips
	@$$(call RUN_TEST,$$(if $$(filter $$*,$$(CROSS_RUNS)),env TEST_SKIPS=$$<.skips \
		TEST_TIMEOUT_FACTOR=$(if $(CROSS_QEMU_$(1)),40 $(CROSS_QEMU_$(1)) \
		-L /usr/$(CROSS_TOOLS_$(1)),6) $$<,\
		echo '$$* compiled: 1 passed$(,) 0 failed$(,) 0 skipped'))
build/cross/$(CROSS_LEVEL)/$(1)/%: tests/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	@echo '$(CROSS_TOOLS_$(1))-gcc $$<'
	@$$(CROSS_CC_$(1)) $$(TEST_CFLAGS) -$(CROSS_LEVEL) $$< -o $$@ -Wl,--no-undefined \
		$(CROSS_LINK_$(1))
	@sh tests/cross/no_libatomic.sh $$@ || { rm $$@; exit 1; }
build/cross/$(CROSS_LEVEL)/$(1)/test_ring_caps: tests/test_queues.c
endef
$(foreach t,$(CROSS_ALL),$(eval $(call CROSS_RULES,$t)))

# ---- examples as C++: the blocks of README.md, examples/README.md and volt.h with each compiler, and all of examples/.
# (type){ ... } is C; in C++ both compilers have it as an extension. g++ finds members without an
# initialiser also where those with one are named.
CXX_EXAMPLES := $(foreach c,g++ clang++,doc-$c $(patsubst %,cxx-$c-%,$(wildcard examples/*.c)))
CXX_EXAMPLE_FLAGS := -std=gnu++20 -Wno-pedantic -Wno-missing-field-initializers
CHECKS += $(CXX_EXAMPLES)

build/check/doc-%:
	@CC='$(subst g++,gcc,$(subst clang++,clang,$*))' CXX='$*' sh tests/doc.sh build/doc-$*
	@touch $@
build/check/cxx-%:
	@mkdir -p $(@D)
	$(firstword $(subst -, ,$*)) $(FLAGS_$(firstword $(subst -, ,$*))) $(CXX_EXAMPLE_FLAGS) \
		-I. -pthread $(GLIB_CFLAGS) -fsyntax-only $(patsubst $(firstword $(subst -, ,$*))-%,%,$*)
	@touch $@

# ---- lists of defects: an edit of volt.h must not leave entries behind that fit nothing.
CHECKS += mutants
build/check/mutants: | build/check
	@APPLY=1 sh tests/model/mutants.sh $@.model none
	@APPLY=1 sh tests/sim/mutants.sh volt.h $@.sim
	@APPLY=1 sh tests/defects.sh $@.defects
	@LIST=1 python3 tests/mutate/mutate.py > $@.log || { grep -A 2 '^settled' $@.log; exit 1; }
	@touch $@
build/check:
	@mkdir -p $@

# ---- install, tried: by pkg-config, CMake, Meson, and by the recipes of examples/packaging. With each
# the compilers must refuse a local that an await loses.
CHECKS += install
check: need-pkg-config need-cmake need-meson need-ninja
PACKAGE_ninja := ninja-build
build/check/install:
	@mkdir -p $(@D)
	@sh tests/install.sh build/check/files-of-$(@F)
	@touch $@

# ---- gdb: examples/gdb/volt.py on a program whose tasks are known, see tests/gdb.sh.
.PHONY: gdb-test
gdb-test: need-gdb need-gcc need-clang
	@sh tests/gdb.sh build/gdb

# ---- everything: what CI runs, what takes too long for it, and what came of it on which commit: see
# tests/everything.py. What the command line sets is for that script alone.
.PHONY: everything
everything: need-python3
	@ONLY='$(ONLY)' SHOW='$(SHOW)' AGAIN='$(AGAIN)' SECONDS='$(SECONDS)' SAMPLE='$(SAMPLE)' \
		LIMITS='$(LIMITS)' python3 tests/everything.py run

# ---- the rest
build/bench/%: bench/%.c volt.h $(wildcard bench/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -DNDEBUG -Wall -Wextra -I. -pthread $< -o $@

BENCHES := $(patsubst bench/%.c,build/bench/%,$(sort $(wildcard bench/*.c)))
demo: build/bench/echo_server build/bench/load
	@bench/demo.sh build/bench

# What the workers of the demo did last, for ui.perfetto.dev; read by a JSON parser, and checked.
.PHONY: trace
trace: need-python3 build/bench/trace/echo_server build/bench/load
	@bench/trace.sh build/bench/trace/echo_server build/bench/load build/trace.json
	@tests/trace.py build/trace.json connection_run bench/echo.h

bench: need-hyperfine $(BENCHES)
	@bench/run.sh
.PHONY: bench-peers bench-placement bench-inside bench-gate bench-coherence
bench-gate: need-valgrind need-objdump
	@CC='$(CC)' bench/gate.sh
bench-peers: need-python3 need-taskset
	@bench/peers.py $(ROW) $(ROWS) $(if $(WORKERS),--workers '$(WORKERS)') \
		$(if $(PAIRS),--pairs '$(PAIRS)') $(if $(RESUME),--resume)
PACKAGE_taskset := util-linux
bench-placement: build/bench/placement
	@bench/placement.sh
# Every access calls tests/model/tsan.c, which is linked with a machine of simulated processors in
# place of the sanitizer.
COHERENT := sched sync chan timer
COHERENCE_PARTS := $(patsubst %,build/bench/coherence/%.part.o,machine kernel hooks symbols)
bench-coherence: need-gcc $(COHERENT:%=build/bench/coherence/%)
	@bench/coherence/run.sh
build/bench/coherence/%.part.o: bench/coherence/%.c $(wildcard bench/coherence/*.h tests/*/*.h)
	@mkdir -p $(@D)
	@gcc $(MODEL_CFLAGS) -O2 -c $< -o $@
build/bench/coherence/%.o: bench/%.c bench/coherence/program.c volt.h \
		$(wildcard bench/*.h bench/coherence/*.h)
	@mkdir -p $(@D)
	@gcc -std=gnu11 -O2 -DNDEBUG -DPROGRAM='"../$*.c"' -fsanitize=thread -Wno-tsan \
		-fno-builtin-memset -fno-builtin-memcpy -fno-builtin-memmove -fno-pie -I. \
		-c bench/coherence/program.c -o $@
	@objcopy --redefine-sym memset=vmc_memset --redefine-sym memcpy=vmc_memcpy \
		--redefine-sym memmove=vmc_memmove $@
$(COHERENT:%=build/bench/coherence/%): build/bench/coherence/%: build/bench/coherence/%.o \
		build/model/gcc/tsan.part.o $(COHERENCE_PARTS)
	@gcc -no-pie $^ -o $@
# The short form; each program says at its head what it can do at length.
bench-inside: need-valgrind build/bench/block build/bench/dump
	@CC='$(CC)' PAIRS=6 bench/inside.sh
	@echo
	@build/bench/block --reps 1 --calls 5000
	@echo
	@build/bench/dump text

build/bench/trace/%: bench/%.c volt.h $(wildcard bench/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -DNDEBUG -DVOLT_TRACE=1 -Wall -Wextra -I. -pthread $< -o $@

# ---- dashboard: what a browser makes of examples/15_dashboard.c; pictures in build/dashboard.
.PHONY: dashboard
dashboard: need-chromium need-python3 build/examples/15_dashboard
	@timeout 300 python3 tests/dashboard.py browser build/examples/15_dashboard build/dashboard

# SIZES='x86-64=cc': that row only.
SIZES ?= x86-64='$(CC)' Thumb-2='arm-linux-gnueabihf-gcc -mthumb' AArch64=aarch64-linux-gnu-gcc \
	MIPS=mips-linux-gnu-gcc RISC-V=riscv64-linux-gnu-gcc
size:
	@CC='$(CC)' sh tests/size.sh build/size $(SIZES)

install:
	mkdir -p '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/pkgconfig'
	cp volt.h '$(DESTDIR)$(PREFIX)/include/volt.h'
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' '' 'Name: volt' \
		'Description: async runtime in one C header' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir} -pthread' 'Libs: -pthread' \
		> '$(DESTDIR)$(PREFIX)/share/pkgconfig/volt.pc'

clean:
	rm -rf build
.SECONDARY:
