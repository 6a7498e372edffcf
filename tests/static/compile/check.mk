# SPDX-License-Identifier: MIT OR 0BSD
# ---- check: one stamp per compilation. hdr-<compiler>-<standard>: the header alone;
# impl-<compiler>-<standard>-<optimisation>: the implementation; unit-<compiler>-<file>: programs.
C_STDS := c99 c11 c17 c2x
CXX_STDS := c++11 c++17 c++20
OPTS := O0 O2 Os O3 flto
IMPL_C_STDS := gnu99 gnu11 c17 c2x
# Every standard and every level; with FULL=1 each with each.
IMPLS := $(if $(FULL),$(foreach o,$(OPTS),$(IMPL_C_STDS:%=%-$o)),$(OPTS:%=gnu11-%) \
	$(patsubst %,%-O2,$(filter-out gnu11,$(IMPL_C_STDS))))
UNITS := $(TEST_SOURCES) tests/fault/fault.c tests/platform/clocks.c tests/platform/clock_now.c \
	tests/platform/harden_probe.c \
	$(sort $(wildcard examples/*.c $(BENCH_DIRS:%=%/*.c) bench/coherence/*.c tests/fuzz/*.c \
	tests/odds/*.c tests/sim/*.c))
CHECKS += $(foreach c,gcc clang,$(C_STDS:%=hdr-$c-%) \
	$(IMPLS:%=impl-$c-%) $(UNITS:%=unit-$c-%)) \
	$(foreach c,g++ clang++,$(CXX_STDS:%=hdr-$c-%) $(OPTS:%=impl-$c-c++17-%)) cppcheck rules fits \
	spelling tidy $(if $(FULL),tidy-VOLT_SINGLE_THREAD tidy-NDEBUG) $(EXAMPLE_CHECKS)
LANG_gcc := c
LANG_g++ := c++
FLAGS_gcc := $(WARN) $(WARN_C) $(WARN_GCC) -x c
FLAGS_clang := $(WARN) $(WARN_C) $(WARN_CLANG) -x c
FLAGS_g++ := $(WARN) $(WARN_GCC) -x c++
FLAGS_clang++ := $(WARN) $(WARN_CLANG) -x c++
word-of = $(word $(1),$(subst -, ,$*))

check: need-gcc need-g++ need-clang need-clang++ need-cppcheck need-clang-tidy \
	need-codespell need-readelf need-lib-sdt $(EXAMPLE_NEEDS)
	@rm -rf build/check
	@mkdir -p build/check
	@printf '#include "volt.h"\n#include "volt.h"\nint volt_user(void);\n' > build/check/hdr.c
	@printf '#define VOLT_IMPLEMENTATION\n#include "volt.h"\n' > build/check/impl.c
	@printf '%s\n' '#include "volt.h"' 'typedef struct { volt_frame frame; } unit;' \
		'static volt_poll unit_run(volt_cx *cx, void *arg) {' 'unit *u = (unit *)arg;' \
		'VOLT_BEGIN(cx, u);' 'VOLT_AWAIT(volt_sleep(cx, VOLT_MS(1)));' 'VOLT_END(0);' '}' \
		'int main(void) { static unit u; return volt_run(NULL, unit_run, &u); }' \
		> build/check/main.c
	$(MAKE_ALL) $(CHECKS:%=build/check/%)
	@echo 'check: $(words $(CHECKS)) passed'

build/check/hdr-%:
	$(call word-of,1) -std=$(call word-of,2) $(FLAGS_$(call word-of,1)) -I. -fsyntax-only \
		build/check/hdr.c
	@touch $@
# gcc warns at link time under -flto, so there a whole program is built.
build/check/impl-%:
	$(call word-of,1) -std=$(call word-of,2) -$(call word-of,3) $(FLAGS_$(call word-of,1)) \
		$(if $(findstring flto,$*),-O2) -I. -pthread -c build/check/impl.c -o $@.o
	@case $* in g*-flto) \
		$(call word-of,1) -O2 -flto $(WARN) -I. -pthread -x $(LANG_$(call word-of,1)) \
			build/check/main.c -x none $@.o -o $@.exe;; \
	esac
	@touch $@
# gcc finds some of its warnings in the optimiser, clang none. The programs are many, and all
# contain volt.h. So gcc compiles the examples, with FULL=1 all programs but the tests; of the
# others the syntax is checked.
UNIT_COMPILED = $(filter $(if $(FULL),gcc-%,gcc-examples/%),\
	$(filter-out $(TEST_SOURCES:%=gcc-%),$*))
build/check/unit-%:
	@mkdir -p $(@D)
	$(firstword $(subst -, ,$*)) -std=gnu11 $(FLAGS_$(firstword $(subst -, ,$*))) -I. -Itests/lib \
		-pthread $(if $(UNIT_COMPILED),-O2 -o $@.o -c,-fsyntax-only) \
		$(patsubst $(firstword $(subst -, ,$*))-%,%,$*)
	@touch $@
build/check/cppcheck:
	cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 -DVOLT_IMPLEMENTATION -D__linux__ -D__x86_64__ \
		-D__GNUC__=12 -D__SIZEOF_POINTER__=8 volt.h
	@touch $@
# fro: "to and fro"; crate: Rust's; nevers, reacher, statics: words of the tests.
build/check/spelling:
	@mkdir -p $(@D)
	codespell --skip='*/corpus/*,*.pyc' --ignore-words-list=fro,crate,nevers,reacher,statics \
		volt.h README.md Makefile tests bench examples .github .ci
	@touch $@
# All checks of clang-tidy for bugs, less those that say nothing about volt.h:
TIDY := -*,bugprone-*,cert-*,clang-analyzer-*,concurrency-*,misc-*,performance-*,portability-*
TIDY += -clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling # memcpy_s: no libc has it
TIDY += -clang-analyzer-optin.performance.Padding   # cache lines are kept apart
TIDY += -bugprone-easily-swappable-parameters       # lengths and capacities are both numbers
TIDY += -bugprone-macro-parentheses                 # a type cannot stand in parentheses
TIDY += -bugprone-reserved-identifier,-cert-dcl37-c,-cert-dcl51-cpp # _GNU_SOURCE
TIDY += -misc-no-recursion        # volt__shield_raise: as deep as shields are nested, 253 at most
TIDY += -performance-no-int-to-ptr                  # tags in the low bits of pointers
TIDY += -clang-analyzer-security.insecureAPI.vfork  # volt__child_vfork: the child only execs
TIDY += -clang-analyzer-unix.Vfork                  # likewise
TIDY += -concurrency-mt-unsafe                      # getenv, as in execvp
space := $(subst ,, )
# With these definitions some variables are not read.
TIDY_DEFINED := $(addprefix build/check/tidy-,VOLT_SINGLE_THREAD NDEBUG)
$(TIDY_DEFINED): TIDY += -clang-analyzer-deadcode.DeadStores
build/check/tidy $(TIDY_DEFINED):
	@sh tests/static/compile/tidy.sh build/check/files-of-$(@F) \
		'$(subst $(space),$(,),$(strip $(TIDY)))' $(patsubst tidy-%,-D%,$(filter tidy-%,$(@F)))
	@touch $@
build/check/rules build/check/fits: build/check/%: volt.h tests/static/%.sh
	sh tests/static/$*.sh volt.h
	@touch $@

# ---- reject and compile: parts of check with scripts of their own, described in their heads.
# Every warning of clang, less those that say nothing about volt.h:
EVERY := -Weverything
EVERY += -Wno-padded                      # layouts are chosen, and asserted
EVERY += -Wno-declaration-after-statement # C99 has it
EVERY += -Wno-disabled-macro-expansion    # glibc: \#define EPOLLIN EPOLLIN
EVERY += -Wno-used-but-marked-unused      # the seam's functions: a test may replace them
EVERY += -Wno-c++98-compat-pedantic       # C++11 is asked for, and its attributes are C23's
EVERY_CXX := -Wno-reserved-identifier     # volt__x: private, and free in C
EVERY_CXX += -Wno-old-style-cast          # the text is C
EVERY_CXX += -Wno-zero-as-null-pointer-constant
CCS := clang++ g++ clang gcc
# The longest scripts run by a compiler for each language; with FULL=1 by each compiler.
LONG_CCS := $(if $(FULL),$(CCS),clang++ gcc)
REJECTS := $(CCS:%=reject-%)
CHECKS += programs above_begin $(REJECTS) $(CCS:%=builds-%) $(LONG_CCS:%=orders-%) \
	$(LONG_CCS:%=less-%) every-c99 every-gnu11 every-c2x every-c++11 every-c++17 every-c++20

reject: need-gcc need-g++ need-clang need-clang++
	@rm -f $(REJECTS:%=build/check/%)
	$(MAKE_ALL) $(REJECTS:%=build/check/%)
build/check/reject-%:
	@mkdir -p $(@D)
	@sh tests/static/reject/run.sh $*
	@touch $@
build/check/orders-%:
	@sh tests/static/compile/orders.sh $* build/check/files-of-$(@F) $(FLAGS_$*) -I.
	@touch $@
build/check/builds-%:
	@sh tests/static/compile/builds.sh $* build/check/files-of-$(@F) $(FLAGS_$*)
	@touch $@
build/check/less-%:
	@sh tests/static/compile/less.sh $* build/check/files-of-$(@F) $(FLAGS_$*)
	@touch $@
# Locals above VOLT_BEGIN, which no compiler warns of; not in tests about such a mistake.
BEGINS = $(filter-out tests/api/misuse.c,\
	$(wildcard volt.h examples/*.[ch] examples/*.cpp $(BENCH_DIRS:%=%/*.[ch]) tests/*/*.[ch]))
build/check/above_begin:
	@sh tests/static/above_begin.sh $(BEGINS)
	@mkdir -p $(@D)
	@sh tests/static/compile/above_begin.sh
	@touch $@
build/check/programs:
	@sh tests/static/compile/programs.sh build/check/files-of-$(@F) $(WARN)
	@touch $@
# The header, a unit that uses it, and the implementation where the standard lets it compile.
EVERY_FILES := -DUNIT=first -I. -fsyntax-only build/check/hdr.c tests/static/compile/unit.c
build/check/every-c++%:
	clang++ -std=c++$* $(strip $(EVERY) $(EVERY_CXX)) -Werror -x c++ $(EVERY_FILES) \
		$(if $(filter-out 11,$*),build/check/impl.c)
	@touch $@
build/check/every-%:
	clang -std=$* $(strip $(EVERY)) -Werror $(EVERY_FILES) \
		$(if $(filter-out c99,$*),build/check/impl.c)
	@touch $@

# ---- install, tried: by pkg-config, CMake and Meson. With each the compilers must refuse a local
# that an await loses.
# Of the packages those parts that need no tool of their own.
CHECKS += install packages
check: need-pkg-config need-cmake need-meson need-ninja
PACKAGE_ninja := ninja-build
build/check/install:
	@mkdir -p $(@D)
	@sh tests/tools/install.sh build/check/files-of-$(@F)
	@touch $@
build/check/packages:
	@mkdir -p $(@D)
	@UPSTREAM='$(UPSTREAM)' MAINTAINER='$(MAINTAINER)' sh examples/packaging/packages.sh \
		build/check/files-of-$(@F) text make buildroot openwrt yocto
	@touch $@

# SIZES='x86-64=cc': that row only. PARTS= : only the first table, and its limits.
SIZES ?= x86-64='$(CC)' Thumb-2='arm-linux-gnueabihf-gcc -mthumb' AArch64=aarch64-linux-gnu-gcc \
	MIPS=mips-linux-gnu-gcc RISC-V=riscv64-linux-gnu-gcc
size:
	@CC='$(CC)' sh tests/static/size.sh build/size $(SIZES)
