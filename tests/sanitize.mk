# SPDX-License-Identifier: MIT OR 0BSD
# ---- sanitize: no suppressions. Thread sanitizer needs a stable address layout on some kernels.
RUN_TSAN := $(shell setarch -R true 2>/dev/null && echo setarch -R)
# unoptimised: no access is left out, and compilers take a third of the time, or less
SAN_FLAGS := -O0 -fno-omit-frame-pointer
SAN_FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SAN_FLAGS_tsan := -fsanitize=thread
# For clang only writes that it sees define memory: msan.h reports those of the kernel. Unoptimised,
# the origins make the longest test of timers twenty times slower.
SAN_FLAGS_msan := -O1 -fsanitize=memory -fsanitize-memory-track-origins -fno-sanitize-recover=all \
	-DTEST_SEES_UNWRITTEN -include tests/platform/msan.h
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
build/$(1)-$(2)/test_%: %.c $$(HEADERS)
	@mkdir -p $$(@D)
	$(2) $$(TEST_CFLAGS) $$(SAN_FLAGS) $$(SAN_FLAGS_$(1)) $$< -o $$@
build/$(1)-$(2)/test_ring_caps: tests/unit/queues.c
endef
$(foreach c,gcc clang,$(foreach s,asan tsan,$(eval $(call SAN_RULES,$s,$c))))
$(eval $(call SAN_RULES,msan,clang))

# ---- reads of unwritten memory, found twice: by memcheck and by clang's memory sanitizer. Short
# programs that make progress on one processor.
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
build/valgrind/test_%: %.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -O1 -DTEST_SEES_UNWRITTEN -DTEST_IN_VALGRIND $< -o $@

# ---- coverage: all tests in both builds, and the examples, see tests/tools/coverage.sh. Functions
# that a program does not call are kept, so that they count as not run. A suite that is not in TESTS
# joins by a log in COVER_LOGS whose program is built with COVER_FLAGS below build/cover: see
# tests/fault/fault.mk. Code that exists for VOLT_SINGLE_THREAD alone is not counted.
# gcc puts a function in place of execve that writes the counts and ends the counting: in the child
# of a vfork it would end that of the parent.
COVER_FLAGS := -O0 --coverage -fprofile-update=atomic -fkeep-static-functions \
	-fkeep-inline-functions -fno-builtin-execve -include tests/tools/coverage.h
COVER_TESTS := $(filter-out test_single,$(TESTS))
COVER_LOGS := $(COVER_TESTS:%=build/log/cover-full-%) $(COVER_TESTS:%=build/log/cover-small-%) \
	$(GOLDEN:%=build/log/cover-example-%)

coverage: need-gcc need-gcov
	@mkdir -p build/cover
	@rm -f $(COVER_LOGS)
	@find build/cover -name '*.gcda' -exec rm -f {} +
	$(MAKE_ALL) $(COVER_LOGS) RUN='env TEST_TIMEOUT_FACTOR=20' || true
	@$(call SUM,$(COVER_LOGS)); tests=$$?; \
		sh tests/tools/coverage.sh build/cover && exit $$tests

build/log/cover-%: build/cover/%
	@$(call RUN_TEST,$(RUN) $<)
build/log/cover-example-%: build/cover/examples/%
	@$(call RUN_TEST,$< && echo 'example $*: 1 passed$(,) 0 failed$(,) 0 skipped')
build/cover/full-test_%: %.c $(HEADERS)
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $< -o $@
build/cover/small-test_%: %.c $(HEADERS)
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $(SMALL) $< -o $@
build/cover/examples/%: examples/%.c volt.h tests/tools/coverage.h
	@mkdir -p $(@D)
	gcc $(TEST_CFLAGS) $(COVER_FLAGS) $< -o $@
build/cover/full-test_ring_caps build/cover/small-test_ring_caps: tests/unit/queues.c

# ---- harden: some tests with the flags of distributions and security guides, warnings being
# errors; tests/platform/harden.sh looks for a mark of each flag in the programs. `make harden
# HARDENINGS='cfi musl'`: these only. 32 bits use a separate compiler: gcc-multilib cannot be
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
define HARDEN_COMPILE
@mkdir -p $(@D)
$(HARDEN_CC) -std=gnu11 -O2 -Wall -Wextra -Werror -I. -Itests/lib -pthread $< -o $@
endef
define HARDEN_RULES
build/log/harden-$(1)-marks: build/harden/$(1)/test_task build/harden/$(1)/harden_probe
	@$$(call RUN_TEST,sh tests/platform/harden.sh harden-$(1) $$^ $(MARKS_$(1)))
build/log/harden-$(1)-%: build/harden/$(1)/%
	@$$(call RUN_TEST,$$(RUN) $$<)
build/harden/$(1)/test_%: %.c $$(HEADERS)
	$$(HARDEN_COMPILE)
build/harden/$(1)/harden_probe: tests/platform/harden_probe.c $$(HEADERS)
	$$(HARDEN_COMPILE)
build/harden/$(1)/%: HARDEN_CC := $$(HARDEN_$(1))
endef
$(foreach h,$(HARDENINGS),$(eval $(call HARDEN_RULES,$h)))
