# SPDX-License-Identifier: MIT OR 0BSD
# ---- test: each log is a target, so that as many run at once as there are processors. A log ends
# with "<name>: N passed, N failed, N skipped"; one that does not counts as a failure.
SINGLE_TESTS := bound brackets calls chan chan_forms chan_kinds clocks compose compose_sync \
	datagrams dirs files group guest misuse net pause process streams sync sync_kinds sync_stress task \
	test_clock timers unix
BARE_TESTS := dirs single timers
RELEASE_TESTS := bound compose guest group single streams
# examples that wait for times: also without real time
CLOCKED := 04_timeout 05_cancel 14_group 16_limits
LOGS := $(TESTS:%=build/log/%) $(TESTS:%=build/log/small-%) $(GOLDEN:%=build/log/example-%) \
	$(CLOCKED:%=build/log/clock-%) \
	$(SINGLE_TESTS:%=build/log/single-test_%) $(BARE_TESTS:%=build/log/bare-test_%) \
	$(RELEASE_TESTS:%=build/log/release-test_%) \
	$(FUZZERS:%=build/log/replay_%) build/log/doc build/log/rules build/log/semantics \
	build/log/any_thread build/log/load build/log/speed

# The normal form with each test compiled at -O2, and with its long parts: see test_is_long.
test-optimised:
	@rm -rf build/log
	$(MAKE_ALL) $(TESTS:%=build/log/optimised-%) || true
	@$(call SUM,$(TESTS:%=build/log/optimised-%))
# Some tests wait for timers, so more of them run at once than there are processors.
test: JOBS := $(shell echo $$(($(JOBS) + 2)))
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
build/log/optimised-test_%: build/optimised/test_%
	@$(call RUN_TEST,TEST_LONG=1 $(RUN) $<)
build/log/single-test_%: build/single/test_%
	@$(call RUN_TEST,$(RUN) $<)
build/log/bare-test_%: build/bare/test_%
	@$(call RUN_TEST,$(RUN) $<)
build/log/release-test_%: build/release/test_%
	@$(call RUN_TEST,$(RUN) $<)
GOLDEN_LIMIT := $(shell command -v timeout >/dev/null && echo timeout 60)
# The output of an example must be what its head says.
RUN_EXAMPLE = mkdir -p $(@D) && \
	sed -n '/^\/\/ Expected output:/,/^[^\/]/s|^// ||p' examples/$*.c | sed 1d > $<.want && \
	if $(GOLDEN_LIMIT) ./$< > $<.out && cmp $<.out $<.want; \
	then echo '$(1) $*: 1 passed, 0 failed, 0 skipped'; \
	else echo '$(1) $*: 0 passed, 1 failed, 0 skipped'; fi | tee $@
build/log/example-%: build/examples/% examples/%.c
	@$(call RUN_EXAMPLE,example)
build/log/clock-%: build/clock/% examples/%.c
	@$(call RUN_EXAMPLE,test clock)
build/clock/%: examples/%.c volt.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O0 -DVOLT_TEST_CLOCK=1 -Wall -Wextra -I. -pthread $< -o $@
build/log/doc: volt.h README.md $(wildcard */README.md) tests/static/doc.sh \
	tests/platform/kernels.sh bench/results/gate.txt $(wildcard tests/static/reject/*)
	@$(call RUN_TEST,CC='$(CC)' CXX='$(CXX)' sh tests/static/doc.sh build/doc)
build/log/rules: volt.h tests/static/rules.sh
	@$(call RUN_TEST,sh tests/static/rules.sh volt.h)

build/log/load: tests/tools/load.sh \
	$(patsubst %,build/bench/%,load bulk drain net_server raw_epoll)
	@$(call RUN_TEST,sh tests/tools/load.sh build/bench)

# The statements of bench/README.md about other runtimes must agree with the measurements.
build/log/speed: bench/README.md tests/tools/speed.py $(wildcard bench/tools/*.py \
	bench/results/results.json bench/results/speed.svg)
	@$(call RUN_TEST,if command -v python3 >/dev/null; then python3 tests/tools/speed.py; \
		else echo 'speed: 0 passed$(,) 0 failed$(,) 1 skipped'; fi)

SEMANTICS := $(filter build/log/test_sync% build/log/test_chan% build/log/test_compose_sync,\
	$(TESTS:%=build/log/%))
build/log/semantics: volt.h tests/static/semantics.sh $(SEMANTICS)
	@$(call RUN_TEST,sh tests/static/semantics.sh volt.h $(SEMANTICS))

# The tests of each two calls of any threads at once: see tests/static/any_thread.txt.
build/log/any_thread: volt.h tests/static/any_thread.txt tests/static/any_thread.sh \
	$(TESTS:%=build/log/%) $(wildcard tests/model/model_*.c tests/sim/*.h)
	@$(call RUN_TEST,sh tests/static/any_thread.sh volt.h $(TESTS:%=build/log/%))

build/log/replay_%: build/fuzz/replay_%
	@$(call RUN_TEST,$(RUN) $< tests/fuzz/corpus/$*)

# Most of a test's compilation is that of the implementation. The tests of SHARED use the default
# seam and share one compilation for each form; the others, which replace parts of the seam, have
# one of their own each. The shared one of the normal form is optimised, as in applications. The
# rest is not, because that takes a fifth of the time: `make test-optimised` compiles the normal
# form of every test with -O2. Only the normal form warns; `make check` compiles volt.h in each form
# with all warnings.
SHARED := beside bound budget chan chan_forms compose compose_sync datagrams guest idle limits net \
	outside pause placement queues rescue shared streams stress sync sync_kinds sync_stress task \
	timers token
build/unit/volt.h build/unit/unit.h: volt.h tests/lib/unit.awk
	@mkdir -p $(@D)
	@awk -v part=$(if $(filter %/volt.h,$@),head,unit) -f tests/lib/unit.awk volt.h > $@
# $(1) the form; $(2) where its programs are; $(3) flags; $(4) flags of the shared implementation
define TEST_RULES
build/unit/$(1).o: build/unit/unit.h
	$$(CC) $$(TEST_CFLAGS) $(3) $(4) -DVOLT_IMPLEMENTATION -x c -c $$< -o $$@
$(SHARED:%=$(2)/test_%): $(2)/test_%: %.c build/unit/$(1).o build/unit/volt.h $$(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) -Ibuild/unit $$(TEST_CFLAGS) $(3) $$< build/unit/$(1).o -o $$@
$(2)/test_%: %.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $$(TEST_CFLAGS) $(3) $$< -o $$@
endef
$(eval $(call TEST_RULES,normal,build,-O0,-O2))
$(eval $(call TEST_RULES,optimised,build/optimised,-O2))
$(eval $(call TEST_RULES,small,build/small,-O0 -w $$(SMALL)))
$(eval $(call TEST_RULES,single,build/single,-O0 -w $$(SINGLE)))
$(eval $(call TEST_RULES,bare,build/bare,-O0 -w $$(BARE)))
$(eval $(call TEST_RULES,release,build/release,-O0 -w $$(RELEASE),-O2))
build/test_ring_caps build/small/test_ring_caps: tests/unit/queues.c
$(GOLDEN:%=build/examples/%): EXAMPLE_LEVEL := -O0
EXAMPLE_LEVEL := -O2
build/examples/%: examples/%.c volt.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(EXAMPLE_LEVEL) -Wall -Wextra -I. -pthread $< $(EXAMPLE_LIBS) -o $@
