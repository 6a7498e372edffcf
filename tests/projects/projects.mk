# SPDX-License-Identifier: MIT OR 0BSD
# ---- projects: examples/projects has programs in the manner of well-known ones, before and after
# their conversion to volt. They run against real peers, as a part of `make examples`.
PROJECT_CHECKS := project-socks project-ae
PROGRAM_CHECKS += $(PROJECT_CHECKS)
PROJECT_FORMS := plain asan tsan
PROJECT_plain := -O2 -g
PROJECT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
PROJECT_tsan := -O1 -g -fsanitize=thread
PROJECT_CFLAGS := -std=gnu11 -Wall -Wextra -I. -Itests/lib -pthread
PROJECT_SOURCES := volt.h tests/lib/test.h examples/programs/server.h \
	$(wildcard examples/projects/*)
# The backends of ae: each test program has one.
AE_BACKENDS := epoll pollset task guest
AE_pollset := -DAE_POLLSET
AE_task := -DAE_TASK
AE_guest := -DAE_GUEST

# $1: form
define PROJECT_RULES
build/projects/$1/%: examples/projects/%.c $(PROJECT_SOURCES)
	@mkdir -p $$(@D)
	$$(CC) $(PROJECT_CFLAGS) $(PROJECT_$1) $$< -o $$@
build/projects/$1/volt.o: volt.h
	@mkdir -p $$(@D)
	$$(CC) $(PROJECT_CFLAGS) $(PROJECT_$1) -DVOLT_IMPLEMENTATION -x c -c $$< -o $$@
build/projects/$1/ae_%: tests/projects/ae.c build/projects/$1/volt.o $(PROJECT_SOURCES)
	$$(CC) $(PROJECT_CFLAGS) $(PROJECT_$1) $$(AE_$$*) $$< build/projects/$1/volt.o -o $$@
build/check/project-socks: build/projects/$1/socks
build/check/project-ae: $(AE_BACKENDS:%=build/projects/$1/ae_%)
endef
$(foreach f,$(PROJECT_FORMS),$(eval $(call PROJECT_RULES,$f)))
build/check/project-socks: build/projects/plain/socks_threads tests/projects/socks.py \
	| $(addprefix need-,nginx curl microsocks python3 valgrind)
build/check/project-ae: | need-valgrind
build/check/project-%: tests/projects/%.sh bench/tools/server.sh
	@mkdir -p $(@D)
	timeout 600 sh tests/projects/$*.sh build/projects
	@touch $@

# As C++, with each backend.
CHECKS += project-cxx-g++ project-cxx-clang++
build/check/project-cxx-%: $(PROJECT_SOURCES)
	@mkdir -p $(@D)
	for form in 'socks.c' 'ae.c' 'ae.c -DAE_POLLSET' 'ae.c -DAE_GUEST'; do \
		$* $(FLAGS_$*) $(CXX_EXAMPLE_FLAGS) -I. -pthread -fsyntax-only examples/projects/$$form || \
			exit 1; \
	done
	@touch $@
