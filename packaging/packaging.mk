# SPDX-License-Identifier: MIT OR 0BSD
# ---- dist, recipes, packages: the archive of a release, the recipes of build systems and
# distributions for it, and a check of each by its own tool; see packaging/README.md.
# The address of the project, and of the people who keep the packages. Nothing else has them.
UPSTREAM ?= https://example.org/volt/volt
MAINTAINER ?= The volt.h authors <volt@example.org>

.PHONY: dist recipes packages
dist:
	@sh packaging/dist.sh build/dist
recipes: dist
	@UPSTREAM='$(UPSTREAM)' MAINTAINER='$(MAINTAINER)' \
		sh packaging/recipes.sh build/dist/volt-$(VERSION).tar.gz build/recipes
packages: need-pkg-config
	@UPSTREAM='$(UPSTREAM)' MAINTAINER='$(MAINTAINER)' \
		sh packaging/packages.sh build/packages $(ONLY)
