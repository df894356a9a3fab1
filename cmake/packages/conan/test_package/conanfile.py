# A user's program, built against the package, answers a dialogue.
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..")


class TestKclxx(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join(ROOT, "samples", "print_records"))
        cmake.build()

    def test(self):
        if can_run(self):
            program = os.path.join(self.cpp.build.bindir, "print_records")
            dialogue = os.path.join(ROOT, "tests", "package", "dialogue.jsonl")
            self.run(f'"{program}" <"{dialogue}" | grep \'"responseFor":"shardEnded"\'', env="conanrun")
