# SPDX-License-Identifier: MIT OR 0BSD
# ---- bench: the benchmarks, the demo and its trace.
build/bench/%: bench/%.c volt.h $(wildcard bench/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -DNDEBUG -Wall -Wextra -I. -pthread $< -o $@

BENCHES := $(patsubst bench/%.c,build/bench/%,$(sort $(wildcard bench/*.c)))
demo: build/bench/echo_server build/bench/load
	@bench/demo.sh build/bench

# The last events of the demo's workers, for ui.perfetto.dev; a JSON parser reads and checks them.
.PHONY: trace
trace: need-python3 build/bench/trace/echo_server build/bench/load
	@bench/trace.sh build/bench/trace/echo_server build/bench/load build/trace.json
	@tests/tools/trace.py build/trace.json connection_run bench/echo.h

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
# The short form; the head of each program describes its options.
bench-inside: need-valgrind build/bench/block build/bench/dump
	@CC='$(CC)' PAIRS=6 bench/inside.sh
	@echo
	@build/bench/block --reps 1 --calls 5000
	@echo
	@build/bench/dump text

build/bench/trace/%: bench/%.c volt.h $(wildcard bench/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -DNDEBUG -DVOLT_TRACE=1 -Wall -Wextra -I. -pthread $< -o $@
