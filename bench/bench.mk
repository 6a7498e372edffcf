# SPDX-License-Identifier: MIT OR 0BSD
# ---- bench: the benchmarks, the demo and its trace.
# A program is named after its file: bench/rows/sched.c makes build/bench/sched.
BENCH_HEADERS := $(wildcard $(BENCH_DIRS:%=%/*.h))
BENCH_SOURCES := $(wildcard $(BENCH_DIRS:%=%/*.c))
BENCHES := $(sort $(patsubst %.c,build/bench/%,$(notdir $(BENCH_SOURCES))))
# $(1) where the programs are; $(2) the folder of their sources; $(3) flags
define BENCH_RULE
$(1)/%: $(2)/%.c volt.h $(BENCH_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) -std=gnu11 -O2 -DNDEBUG$(3) -Wall -Wextra -I. -pthread $$< -o $$@
endef
$(foreach d,$(BENCH_DIRS),$(eval $(call BENCH_RULE,build/bench,$d)))
$(foreach d,$(BENCH_DIRS),$(eval $(call BENCH_RULE,build/bench/trace,$d, -DVOLT_TRACE=1)))

demo: build/bench/echo_server build/bench/load
	@bench/tools/demo.sh build/bench

# The last events of the demo's workers, for ui.perfetto.dev; a JSON parser reads and checks them.
.PHONY: trace
trace: need-python3 build/bench/trace/echo_server build/bench/load
	@bench/tools/trace.sh build/bench/trace/echo_server build/bench/load build/trace.json
	@tests/tools/trace.py build/trace.json connection_run bench/servers/echo.h

bench: need-hyperfine $(BENCHES)
	@bench/tools/run.sh
.PHONY: bench-peers bench-placement bench-inside bench-gate bench-coherence
bench-gate: need-valgrind need-objdump need-clang
	@CC='$(CC)' bench/tools/gate.sh
	@CC=clang bench/tools/gate.sh
bench-peers: need-python3 need-taskset
	@bench/tools/peers.py $(ROW) $(ROWS) $(if $(WORKERS),--workers '$(WORKERS)') \
		$(if $(PAIRS),--pairs '$(PAIRS)') $(if $(RESUME),--resume)
PACKAGE_taskset := util-linux
bench-placement: build/bench/placement
	@bench/tools/placement.sh
# Every access calls tests/model/tsan.c, which is linked with a machine of simulated processors in
# place of the sanitizer.
COHERENT := sched sync chan timer outside
COHERENCE_PARTS := $(patsubst %,build/bench/coherence/%.part.o,machine kernel hooks symbols)
bench-coherence: need-gcc $(COHERENT:%=build/bench/coherence/%)
	@bench/coherence/run.sh
build/bench/coherence/%.part.o: bench/coherence/%.c $(wildcard bench/coherence/*.h tests/*/*.h)
	@mkdir -p $(@D)
	@gcc $(MODEL_CFLAGS) -O2 -c $< -o $@
build/bench/coherence/%.o: bench/rows/%.c bench/coherence/program.c volt.h \
		$(BENCH_HEADERS) $(wildcard bench/coherence/*.h)
	@mkdir -p $(@D)
	@gcc -std=gnu11 -O2 -DNDEBUG -DPROGRAM='"../rows/$*.c"' -fsanitize=thread -Wno-tsan \
		-fno-builtin-memset -fno-builtin-memcpy -fno-builtin-memmove -fno-pie -I. \
		-c bench/coherence/program.c -o $@
	@objcopy --redefine-sym memset=vmc_memset --redefine-sym memcpy=vmc_memcpy \
		--redefine-sym memmove=vmc_memmove $@
$(COHERENT:%=build/bench/coherence/%): build/bench/coherence/%: build/bench/coherence/%.o \
		build/model/gcc/tsan.part.o $(COHERENCE_PARTS)
	@gcc -no-pie $^ -o $@
# The short form; the head of each program describes its options.
bench-inside: need-valgrind build/bench/block build/bench/dump
	@CC='$(CC)' PAIRS=6 bench/tools/inside.sh
	@echo
	@build/bench/block --reps 1 --calls 5000
	@echo
	@build/bench/dump text

# ---- TLS: a server by volt.h and one by OpenSSL alone, and their client; see tools/tls_ratio.sh.
# Apart, since only these need OpenSSL.
.PHONY: bench-tls
bench-tls: need-taskset need-openssl need-lib-ssl
	@bench/tools/tls_ratio.sh $(ROWS)
$(patsubst %,build/bench/%,tls_server raw_tls tls_load): build/bench/%: bench/tls/%.c volt.h \
		$(BENCH_HEADERS) $(wildcard bench/tls/*.h examples/adapters/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -DNDEBUG -Wall -Wextra -I. -pthread $< -o $@ -lssl -lcrypto
