# SPDX-License-Identifier: MIT OR 0BSD
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, get

required_conan_version = ">=2.0"


class VoltConan(ConanFile):
    name = "volt"
    description = "Async runtime for C in one header: tasks on all cores, timers, sockets"
    license = "MIT OR 0BSD"
    url = "@UPSTREAM@"
    homepage = "@UPSTREAM@"
    topics = ("async", "coroutines", "event-loop", "scheduler", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def package_id(self):
        self.info.clear()

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("volt.h runs on Linux only")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def package(self):
        share = os.path.join(self.source_folder, "examples/packaging/share")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "volt.h", self.source_folder, os.path.join(self.package_folder, "include"))
        copy(self, "*", share, os.path.join(self.package_folder, "share", "volt"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.resdirs = ["share"]
        # find_package(volt) takes the package's own targets: with those of Conan volt.h would be in
        # a system directory, in which compilers suppress warnings.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "volt")]
        self.cpp_info.set_property("pkg_config_name", "volt")
        self.cpp_info.set_property("pkg_config_custom_content",
                                   "implementation=${prefix}/share/volt/volt.c")
        self.cpp_info.cflags = self.cpp_info.cxxflags = ["-pthread"]
        self.cpp_info.system_libs = ["pthread"]
