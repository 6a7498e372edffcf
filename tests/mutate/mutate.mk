# SPDX-License-Identifier: MIT OR 0BSD
# ---- mutate: small defects of volt.h that some test must notice, see tests/mutate/mutate.py.
mutate: need-python3 $(MODEL_PARTS:%=build/model/gcc/%.part.o)
	@ONLY='$(ONLY)' SAMPLE='$(SAMPLE)' SEED='$(SEED)' RECHECK='$(RECHECK)' LIST='$(LIST)' \
		JOBS='$(JOBS)' python3 tests/mutate/mutate.py

# ---- defects: handwritten, each with the test that must notice it, see tests/mutate/defects.sh.
.PHONY: defects
defects:
	@CC='$(CC)' JOBS='$(JOBS)' sh tests/mutate/defects.sh build/defects $(ONE)

# ---- lists of defects: after an edit of volt.h no entry may be left that does not fit.
CHECKS += mutants
build/check/mutants: | build/check
	@APPLY=1 sh tests/model/mutants.sh $@.model none
	@APPLY=1 sh tests/sim/mutants.sh volt.h $@.sim
	@APPLY=1 sh tests/mutate/defects.sh $@.defects
	@LIST=1 python3 tests/mutate/mutate.py > $@.log || { grep -A 2 '^settled' $@.log; exit 1; }
	@touch $@
build/check:
	@mkdir -p $@
