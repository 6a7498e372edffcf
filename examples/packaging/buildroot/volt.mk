################################################################################
#
# volt
#
################################################################################

# SPDX-License-Identifier: MIT OR 0BSD
VOLT_VERSION = @VERSION@
VOLT_SITE = @UPSTREAM@/releases/download/v$(VOLT_VERSION)
VOLT_LICENSE = MIT or 0BSD
VOLT_LICENSE_FILES = LICENSE
# a header, which is compiled into the programs that use it
VOLT_INSTALL_STAGING = YES
VOLT_INSTALL_TARGET = NO

define VOLT_INSTALL_STAGING_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) install DESTDIR=$(STAGING_DIR) PREFIX=/usr
endef

$(eval $(generic-package))
