# SPDX-License-Identifier: MIT OR 0BSD
# ---- dist, recipes, packages: the archive of a release, the recipes of build systems and
# distributions for it, and a check of each by its own tool; see examples/packaging/README.md.
# The address of the project, and of the people who keep the packages. Nothing else has them.
UPSTREAM ?= https://example.org/volt/volt
MAINTAINER ?= The volt.h authors <volt@example.org>

.PHONY: dist recipes packages
dist:
	@sh examples/packaging/dist.sh build/dist
recipes: dist
	@UPSTREAM='$(UPSTREAM)' MAINTAINER='$(MAINTAINER)' \
		sh examples/packaging/recipes.sh build/dist/volt-$(VERSION).tar.gz build/recipes
packages: need-pkg-config
	@UPSTREAM='$(UPSTREAM)' MAINTAINER='$(MAINTAINER)' \
		sh examples/packaging/packages.sh build/packages $(ONLY)

# ---- doc: the manual, the contracts and the guides as HTML and man pages, in build/doc; doc-check
# looks at them, also in headless Chromium. See examples/packaging/pages/pages.py.
.PHONY: doc doc-check
doc: need-pandoc need-python3
	@python3 examples/packaging/pages/pages.py build/doc
doc-check: doc need-chromium need-man
	@timeout 1200 python3 examples/packaging/pages/check.py build/doc
PACKAGE_man := man-db
