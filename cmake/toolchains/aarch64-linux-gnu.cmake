# Debian's cross compiler for arm64, for scripts/nightly arm64. Headers without code of their own (Boost, nlohmann_json,
# CLI11, Catch2) are the machine's, which the compiler searches too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# CTest and Catch2 put it before the name of a program.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

# The machine's own libraries are for another processor.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
