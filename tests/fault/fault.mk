# SPDX-License-Identifier: MIT OR 0BSD
# ---- fault: see tests/fault/fault.c. FULL=1: all workers, small bounds, the address sanitizer, and
# the shipped builds of the programs, under strace and prlimit. ONE='...': one run, by its line.
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

# ---- a part of `make coverage`: most paths behind errors are taken here alone.
COVER_LOGS += build/log/cover-fault
build/log/cover-fault: build/cover/fault
	@$(call RUN_TEST,$(RUN) $< && echo 'fault: 1 passed$(,) 0 failed$(,) 0 skipped')
build/cover/fault: $(FAULT_SRC) tests/tools/coverage.h
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) tests/fault/fault.c -o $@
