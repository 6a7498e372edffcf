# SPDX-License-Identifier: MIT OR 0BSD
# ---- model: the weak-memory model checker, see tests/model/vmc.h. The checker itself is plain C;
# scenarios are compiled with -fsanitize=thread and linked with tests/model/tsan.c in place of the
# sanitizer's library. objcopy gathers their statics in sections that the checker saves and
# restores, and redirects their memset and memcpy to it.
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
# $(1): programs, $(2): options. The programs run side by side; one that crashes prints no sum, but fails.
MODEL_RUN = rm -rf build/log/$@; mkdir -p build/log/$@; status=0; \
	printf '%s\n' $(1) | xargs -P $(JOBS) -I{} sh -c 'log=build/log/$@/$$(basename {}); \
		./{} $(2) $(ONE) >$$log; status=$$?; cat $$log; exit $$status' || status=$$?; \
	$(MODEL_SUM) && exit $$status
MODEL_SUM = awk '/^[a-z_]+: [0-9]+ passed, [0-9]+ failed$$/ { p += $$2; f += $$4 } \
	END { printf "$@: %d passed, %d failed\n", p, f; exit !p || f }' build/log/$@/*

model:
	$(MAKE_ALL) $(MODEL_PROGRAMS)
ifdef REPLAY
	@for p in $(MODEL_PROGRAMS); do ./$$p -r '$(REPLAY)' || exit 1; done
else
	@sed -n 's/^\([a-z][a-z0-9_]*\)\t.*/\1/p' $(MODEL_EXPECTED) | while read s; do \
		grep -q "^SCENARIO($$s[,)]" tests/model/model_*.c || \
			{ echo "$(MODEL_EXPECTED): no scenario $$s"; exit 1; }; \
	done
	@$(call MODEL_RUN,$(MODEL_PROGRAMS),$(MODEL_FLAGS) -e $(MODEL_EXPECTED))
endif
# The shipped form, without assertions: these add atomic operations, one of which may acquire in
# place of the code. The graphs differ from those of expected.txt.
model-shipped:
	$(MAKE_ALL) $(MODEL_SHIPPED)
	@$(call MODEL_RUN,$(MODEL_SHIPPED))
model-full:
	@$(MAKE) --no-print-directory model MODEL_FLAGS=-l
	@$(MAKE) --no-print-directory model-shipped

# Defects of volt.h that a scenario must catch; defects of the checker that a litmus test must
# catch.
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
