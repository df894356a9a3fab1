# conan create cmake/packages/conan --build=missing
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt


class Kclxx(ConanFile):
    name = "kclxx"
    description = "C++20 library for children of the Kinesis MultiLangDaemon"
    license = "Apache-2.0"
    topics = ("kinesis", "aws", "streaming", "kcl")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "tool": [True, False],
        # The machine's Boost, nlohmann_json and CLI11 instead of Conan's.
        "system_dependencies": [True, False],
    }
    default_options = {"shared": False, "tool": False, "system_dependencies": False}

    def set_version(self):
        cmake = load(self, os.path.join(self.recipe_folder, "..", "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(kclxx VERSION ([0-9.]+)", cmake).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..", "..")
        for part in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md", "cmake/*", "include/*", "src/*", "properties/*"):
            copy(self, part, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if self.options.system_dependencies:
            return
        self.requires("boost/1.86.0", options={"header_only": True}, visible=False)
        self.requires("nlohmann_json/3.11.3", visible=False)
        if self.options.tool:
            self.requires("cli11/2.4.2", visible=False)

    def system_requirements(self):
        if self.options.system_dependencies:
            Apt(self).check(["libboost1.81-dev", "nlohmann-json3-dev", "libcli11-dev"])

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(KCLXX_BUILD_TESTS=False, KCLXX_BUILD_SAMPLES=False,
                                         KCLXX_BUILD_CLI=bool(self.options.tool))
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The library's own CMake files, so that a user has the same targets as without Conan.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/kclxx"]
