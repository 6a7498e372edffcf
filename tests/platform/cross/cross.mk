# SPDX-License-Identifier: MIT OR 0BSD
# ---- cross: the tests on other processors under qemu's user mode, and with another C library. i386
# and musl run natively. skips.txt, in this folder, lists the tests that cannot work on a target.
#   make cross TARGETS='aarch64 musl'   these only
#   make cross CROSS_QUICK=1            compiles all, without optimisation; runs some tests
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

# The skipped tests, with target and reason.
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
	@$$(call RUN_TEST,sh tests/platform/cross/compile.sh build/cross/compile-$(1) \
		'$(or $(CROSS_STDS_$(1)),gnu11)' $$(CROSS_CC_$(1)))
build/log/cross-$(1)-%: build/cross/$(CROSS_LEVEL)/$(1)/%
	@sed -nE 's/^($(1)|$(if $(CROSS_QEMU_$(1)),qemu)) $$* //p' \
		tests/platform/cross/skips.txt > $$<.skips
	@$$(call RUN_TEST,$$(if $$(filter $$*,$$(CROSS_RUNS)),env TEST_SKIPS=$$<.skips \
		TEST_TIMEOUT_FACTOR=$(if $(CROSS_QEMU_$(1)),40 $(CROSS_QEMU_$(1)) \
		-L /usr/$(CROSS_TOOLS_$(1)),6) $$<,\
		echo '$$* compiled: 1 passed$(,) 0 failed$(,) 0 skipped'))
build/cross/$(CROSS_LEVEL)/$(1)/test_%: %.c $$(HEADERS)
	@mkdir -p $$(@D)
	@echo '$(CROSS_TOOLS_$(1))-gcc $$<'
	@$$(CROSS_CC_$(1)) $$(TEST_CFLAGS) -$(CROSS_LEVEL) $$< -o $$@ -Wl,--no-undefined \
		$(CROSS_LINK_$(1))
	@sh tests/platform/cross/no_libatomic.sh $$@ || { rm $$@; exit 1; }
build/cross/$(CROSS_LEVEL)/$(1)/test_ring_caps: tests/unit/queues.c
endef
$(foreach t,$(CROSS_ALL),$(eval $(call CROSS_RULES,$t)))
