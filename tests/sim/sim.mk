# SPDX-License-Identifier: MIT OR 0BSD
# ---- sim: the normal build has the even seeds, the small one the odd ones. The output is bounded.
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
	$(CC) $(SIM_CFLAGS) $(SMALL) tests/sim/main.c -o $@

sim-mutants: $(SIM_SOURCES) volt.h tests/sim/mutants.sh
	@CC='$(CC)' sh tests/sim/mutants.sh volt.h build/sim/mutants $(MUTANT)
