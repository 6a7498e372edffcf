# SPDX-License-Identifier: MIT OR 0BSD
# ---- image: kernel and busybox from packages of a distribution, the echo server and the supervisor
# of examples/ in an initramfs, which qemu-system boots; see README.md in this folder.
#   make image IMAGES='armhf-6.1 riscv64-6.12'   these only
IMAGES_ALL := armhf-6.1 armhf-5.10 riscv64-6.12 mipsel-6.1 i386-4.4
IMAGES ?= $(IMAGES_ALL)
# PACKAGES: the suite, the architecture, its packages. MODULES: those that the machine needs. TOOLS:
# the prefix of the compiler. MUSL: the name of musl's directories, if the programs use it and not
# glibc. MACHINE: the command, in which boot.py replaces NET.
IMAGE_PACKAGES_armhf-6.1 := bookworm armhf linux-image-armmp busybox-static musl-dev
IMAGE_MODULES_armhf-6.1 := virtio_mmio virtio_net
IMAGE_TOOLS_armhf-6.1 := arm-linux-gnueabihf-
IMAGE_MUSL_armhf-6.1 := arm-linux-musleabihf
IMAGE_MACHINE_armhf-6.1 := qemu-system-arm -M virt -cpu cortex-a15 -smp 2 -m 256 \
	-append 'console=ttyAMA0 quiet panic=1' -netdev NET -device virtio-net-device,netdev=net

IMAGE_PACKAGES_armhf-5.10 := bullseye armhf linux-image-armmp busybox-static
IMAGE_MODULES_armhf-5.10 := $(IMAGE_MODULES_armhf-6.1)
IMAGE_TOOLS_armhf-5.10 := $(IMAGE_TOOLS_armhf-6.1)
IMAGE_MACHINE_armhf-5.10 := $(IMAGE_MACHINE_armhf-6.1)

IMAGE_PACKAGES_riscv64-6.12 := trixie riscv64 linux-image-riscv64 busybox-static opensbi
IMAGE_MODULES_riscv64-6.12 := virtio_net
IMAGE_TOOLS_riscv64-6.12 := riscv64-linux-gnu-
IMAGE_MACHINE_riscv64-6.12 := qemu-system-riscv64 -M virt -smp 2 -m 512 \
	-bios build/image/riscv64-6.12/root/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin \
	-append 'console=ttyS0 quiet panic=1' -netdev NET -device virtio-net-pci,netdev=net

IMAGE_PACKAGES_mipsel-6.1 := bookworm mipsel linux-image-4kc-malta busybox-static musl-dev
IMAGE_MODULES_mipsel-6.1 := pcnet32
IMAGE_TOOLS_mipsel-6.1 := mipsel-linux-gnu-
IMAGE_MUSL_mipsel-6.1 := mipsel-linux-musl
IMAGE_MACHINE_mipsel-6.1 := qemu-system-mipsel -M malta -cpu 24Kf -m 256 \
	-append 'console=ttyS0 quiet panic=1' -netdev NET -device pcnet,netdev=net

IMAGE_PACKAGES_i386-4.4 := xenial i386 linux-image-virtual busybox-static
IMAGE_TOOLS_i386-4.4 := i686-linux-gnu-
IMAGE_MACHINE_i386-4.4 := qemu-system-i386 -M pc -m 256 \
	-append 'console=ttyS0 quiet panic=1' -netdev NET -device virtio-net-pci,netdev=net

IMAGE_LOGS = $(IMAGES:%=build/log/image-%)
.PHONY: image
image: need-python3 need-apt-get need-dpkg-deb need-timeout $(foreach i,$(IMAGES),\
		need-$(IMAGE_TOOLS_$i)gcc need-$(firstword $(IMAGE_MACHINE_$i)))
	@rm -f $(IMAGE_LOGS)
	$(MAKE_ALL) $(IMAGE_LOGS) || true
	@grep -h '^|' $(IMAGE_LOGS) || true
	@$(call SUM,$(IMAGE_LOGS)) > build/image/sum; failed=$$?; sed '$$s/^/image: /' build/image/sum; \
		exit $$failed

PACKAGE_apt-get := apt
PACKAGE_dpkg-deb := dpkg
PACKAGE_timeout := coreutils
PACKAGE_qemu-system-riscv64 := qemu-system-misc
PACKAGE_qemu-system-mipsel := qemu-system-mips
PACKAGE_qemu-system-i386 := qemu-system-x86
IMAGE_SECONDS := 3600
IMAGE_CFLAGS := -std=gnu11 -Os -DNDEBUG -DVOLT_STATIC -fno-pie -Wall -Wextra -I. -pthread
build/image/%/packages: tests/image/packages.sh $(wildcard tests/image/*.sha256)
	@mkdir -p $(@D)
	tests/image/packages.sh $(@D) $(IMAGE_PACKAGES_$*)
	@touch $@
# $(1) an image
define IMAGE_RULES
PACKAGE_$(IMAGE_TOOLS_$(1))gcc ?= gcc-$(IMAGE_TOOLS_$(1):%-=%)
# The compiler of the C library in the package: its files are not where its specs expect them.
build/image/$(1)/cc: build/image/$(1)/packages tests/image/image.mk
	@$(if $(IMAGE_MUSL_$(1)),sed 's| /usr/| $$(abspath $$(@D))/root/usr/|g; \
		s|-L/usr/|-L$$(abspath $$(@D))/root/usr/|g' \
		$$(@D)/root/usr/lib/$(IMAGE_MUSL_$(1))/musl-gcc.specs > $$(@D)/specs)
	@echo '$(IMAGE_TOOLS_$(1))gcc $(if $(IMAGE_MUSL_$(1)),-specs=$$(@D)/specs)' > $$@
build/image/$(1)/echo_server.o: examples/03_echo.c examples/03_server.h
build/image/$(1)/supervisor.o: examples/programs/supervisor.c
build/image/$(1)/%.o: volt.h build/image/$(1)/cc
	$$$$(cat $$(@D)/cc) $(IMAGE_CFLAGS) -c $$(filter %.c,$$^) -o $$@
build/image/$(1)/%: build/image/$(1)/%.o
	$$$$(cat $$(@D)/cc) -no-pie -static -s -pthread $$< -o $$@
build/image/$(1)/initramfs.gz: tests/image/initramfs.py $(wildcard tests/image/guest/*) \
		build/image/$(1)/packages build/image/$(1)/echo_server build/image/$(1)/supervisor
	python3 tests/image/initramfs.py $$(@D)/root $$(@D) $$@ $(IMAGE_MODULES_$(1))
build/log/image-$(1): build/image/$(1)/initramfs.gz tests/image/boot.py
	@ln -sf root/boot/$$$$(cd build/image/$(1)/root/boot && ls vmlinu*) build/image/$(1)/kernel
	@$$(call RUN_TEST,timeout --foreground $(IMAGE_SECONDS) python3 tests/image/boot.py $(1) \
		build/image/$(1) $(IMAGE_TOOLS_$(1)) $$(IMAGE_MACHINE_$(1)) \
		-kernel build/image/$(1)/kernel -initrd $$<)
endef
$(foreach i,$(IMAGES_ALL),$(eval $(call IMAGE_RULES,$i)))
