#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR 0BSD
"""Makes the initramfs of an image.

    initramfs.py PACKAGES PROGRAMS OUT [MODULE...]

PACKAGES is the directory into which packages.sh has unpacked the packages, PROGRAMS has echo_server
and supervisor, and OUT is made. The modules, and those that they depend on, are loaded at the
start. The archive is written here and not by cpio(1), because device files need no root then.
"""
import glob
import gzip
import lzma
import os
import re
import stat
import sys

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")
DIRECTORY, EXECUTABLE, LINK, DEVICE = (
    stat.S_IFDIR | 0o755, stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o600)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Archive:
    """An archive in the "newc" format, in which owners are root and times are 0."""

    def __init__(self):
        self.parts = []
        self.inode = 0

    def add(self, name, mode, data=b"", device=(0, 0)):
        self.inode += 1
        name = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        for part in (head, data):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def finish(self):
        self.add("TRAILER!!!", 0)
        return gzip.compress(b"".join(self.parts), 9, mtime=0)


class Modules:
    """The modules of a kernel package. Each one names those that it depends on."""

    def __init__(self, packages):
        self.paths = {}
        for path in glob.glob(packages + "/**/lib/modules/*/kernel/**/*.ko*", recursive=True):
            self.paths[os.path.basename(path).split(".ko")[0].replace("-", "_")] = path
        self.loaded = {}  # name: content, in the order in which they must be loaded

    def load(self, name):
        if name in self.loaded:
            return
        if name not in self.paths:
            sys.exit(f"{name}: the kernel's package has no such module")
        content = read(self.paths[name])
        if self.paths[name].endswith(".xz"):
            content = lzma.decompress(content)
        needs = re.search(rb"\0depends=([^\0]*)\0", content)
        for need in needs[1].decode().split(",") if needs and needs[1] else ():
            self.load(need.replace("-", "_"))
        self.loaded[name] = content


def main():
    packages, programs, out, *wanted = sys.argv[1:]
    archive = Archive()
    for name in ("bin", "dev", "etc", "lib", "lib/modules", "proc"):
        archive.add(name, DIRECTORY)
    archive.add("dev/console", DEVICE, device=(5, 1))
    archive.add("dev/null", DEVICE, device=(1, 3))
    busybox, = glob.glob(packages + "/bin/busybox") or glob.glob(packages + "/usr/bin/busybox")
    archive.add("init", LINK, b"bin/busybox")
    archive.add("bin/busybox", EXECUTABLE, read(busybox))
    for name in ("echo_server", "supervisor"):
        archive.add(f"bin/{name}", EXECUTABLE, read(f"{programs}/{name}"))
    for name in sorted(os.listdir(GUEST)):
        archive.add(f"etc/{name}", EXECUTABLE, read(f"{GUEST}/{name}"))
    modules = Modules(packages)
    for name in wanted:
        modules.load(name)
    for i, (name, content) in enumerate(modules.loaded.items()):
        archive.add(f"lib/modules/{i:02}-{name}.ko", EXECUTABLE, content)
    with open(out, "wb") as file:
        file.write(archive.finish())


main()
