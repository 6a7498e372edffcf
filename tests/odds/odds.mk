# SPDX-License-Identifier: MIT OR 0BSD
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
build/odds/test_%: %.c tests/odds/odds.h $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 -include tests/odds/odds.h $< -o $@

# ---- kernels: the tests where an old kernel or a filter refuses, see tests/platform/old_kernel.h.
KERNELS := $(TESTS:%=build/kernels/%)

kernels:
	$(MAKE_ALL) $(KERNELS)
	@JOBS=$(JOBS) sh tests/platform/kernels.sh build/kernels

build/kernels/test_%: %.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O1 -include tests/platform/old_kernel.h $< -o $@
build/kernels/test_ring_caps: tests/unit/queues.c

# ---- clocks: waits far from the start of CLOCK_MONOTONIC and beyond counts at which numbers wrap,
# see tests/platform/clocks.sh. The longest two run only at some times: test_steps where a count is
# passed; test_idle, which detects a wait that ends too early and begins again, after one.
CLOCKS := 12_days past_12.4_days 24.8_days past_24.8_days 49.7_days past_49.7_days 10_years \
	past_8.7_years
CLOCK_TESTS := clocks $(addprefix test_,timers compose guest rescue sched task group public)
CLOCK_TESTS_past_24.8_days := test_steps
CLOCK_TESTS_past_49.7_days := test_steps
CLOCK_TESTS_24.8_days := test_idle
CLOCK_TESTS_10_years := test_idle
CLOCK_LOGS = $(foreach t,$(CLOCK_TESTS) $(CLOCK_TESTS_$(1)),build/log/clocks-$(1)-$t)

clocks: need-unshare build/clock_now
	@sh tests/platform/clocks.sh can_enter '' build/clock_now
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
	@$$(call RUN_TEST,sh tests/platform/clocks.sh $(1) $$< build/clock_now)
endef
$(foreach c,$(CLOCKS),$(eval $(call CLOCK_RULES,$c)))
build/clocks: tests/platform/clocks.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O2 $< -o $@
build/clock_now: tests/platform/clock_now.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $< -o $@
