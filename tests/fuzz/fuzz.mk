# SPDX-License-Identifier: MIT OR 0BSD
# ---- fuzz: `make test` runs saved inputs, too. New findings go to build/fuzz/found-<name>.
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
