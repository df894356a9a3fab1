# What a build needs, from the distribution; a missing one is named with its Debian package. The library needs Boost and
# simdjson; nlohmann_json is for the fake daemon (so for the test kit) and for the tool.
# A macro, since a package's find script may set variables for its caller.
macro(kclxx_require name version package)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR
      "kclxx needs ${name} ${version} or newer, which was not found. "
      "On Debian and Ubuntu: apt-get install ${package}")
  endif()
endmacro()

find_package(Threads REQUIRED)
kclxx_require(Boost 1.74 libboost1.81-dev)
kclxx_require(nlohmann_json 3.11 nlohmann-json3-dev)
kclxx_require(simdjson 3.0 libsimdjson-dev)
if(KCLXX_BUILD_CLI OR KCLXX_BUILD_TESTS)
  kclxx_require(CLI11 2.1 libcli11-dev)
endif()
if(KCLXX_BUILD_PROMETHEUS)
  find_package(prometheus-cpp QUIET)  # Debian's has no version file
  if(NOT TARGET prometheus-cpp::core)
    message(FATAL_ERROR "KCLXX_BUILD_PROMETHEUS needs prometheus-cpp, which was not found. "
      "On Debian and Ubuntu: apt-get install prometheus-cpp-dev")
  endif()
endif()
if(KCLXX_BUILD_TESTS)
  find_package(Catch2 3 QUIET)
  if(NOT Catch2_FOUND)
    kclxx_require(Catch2 2.13 catch2)
  endif()
endif()
