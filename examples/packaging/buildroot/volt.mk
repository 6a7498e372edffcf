# SPDX-License-Identifier: MIT OR 0BSD
# Buildroot package of volt.h; see ../README.md.
################################################################################
#
# volt
#
################################################################################

VOLT_VERSION = 0.1.0
VOLT_SITE = $(VOLT_PKGDIR)/src
VOLT_SITE_METHOD = local
VOLT_LICENSE = MIT or 0BSD
VOLT_LICENSE_FILES = LICENSE
VOLT_INSTALL_STAGING = YES
VOLT_INSTALL_TARGET = NO

define VOLT_INSTALL_STAGING_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) install DESTDIR=$(STAGING_DIR) PREFIX=/usr
endef

$(eval $(generic-package))
