# What a build needs, from the distribution; a missing one is named with its Debian package, or downloaded if
# KCLXX_FETCH_DEPENDENCIES is set. The library needs Boost and nlohmann_json, of which a program that links it needs
# nothing.

# Boost alone is not downloaded: each platform has 1.74 or newer, and its archive is 100 times the size of the others.
set(KCLXX_nlohmann_json_archive nlohmann/json 3.11.3
  0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406)
set(KCLXX_CLI11_archive CLIUtils/CLI11 2.4.1
  73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58)
set(KCLXX_Catch2_archive catchorg/Catch2 2.13.10
  2f4fe284449cf17394350e027ae21958973a61b9161197d416e2dfca16167686)

# Unpacks the archive of `name`, whose folder is then ${name}_folder.
function(kclxx_fetch name)
  list(GET KCLXX_${name}_archive 0 repository)
  list(GET KCLXX_${name}_archive 1 version)
  list(GET KCLXX_${name}_archive 2 hash)
  get_filename_component(project ${repository} NAME)
  set(url https://github.com/${repository}/archive/refs/tags/v${version}.tar.gz)
  if(IS_DIRECTORY "${KCLXX_FETCH_DEPENDENCIES}")
    set(url ${KCLXX_FETCH_DEPENDENCIES}/${project}-${version}.tar.gz)
  endif()
  message(STATUS "kclxx: ${name} is missing or too old here; ${version} comes from ${url}")
  string(TOLOWER kclxx_${name} content)
  # A folder that is not there: none of its own CMake files is read.
  FetchContent_Declare(${content} URL ${url} URL_HASH SHA256=${hash} SOURCE_SUBDIR not-used)
  FetchContent_MakeAvailable(${content})
  set(${name}_folder ${${content}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

# Makes `target`, unless it is there: a parent project may have it, of its own or of an earlier find_package(). Otherwise
# the package has it, or headers in `headers`, a folder of the downloaded archive. A target that is made here is not
# global, so that a parent project may still make its own.
# A macro, since a package's find script may set variables for its caller.
macro(kclxx_require name version package target headers)
  if(TARGET ${target})
    if(DEFINED ${name}_VERSION AND ${name}_VERSION VERSION_LESS ${version})
      message(FATAL_ERROR "kclxx needs ${name} ${version} or newer; the project that includes it has ${${name}_VERSION}")
    endif()
  else()
    find_package(${name} ${version} QUIET)
    if(NOT ${name}_FOUND)
      if(NOT KCLXX_FETCH_DEPENDENCIES OR NOT DEFINED KCLXX_${name}_archive)
        message(FATAL_ERROR
          "kclxx needs ${name} ${version} or newer, which was not found. "
          "On Debian and Ubuntu: apt-get install ${package} "
          "(docs/install.md has other platforms, and KCLXX_FETCH_DEPENDENCIES)")
      endif()
      include(FetchContent)
      kclxx_fetch(${name})
      add_library(${target} INTERFACE IMPORTED)
      target_include_directories(${target} SYSTEM INTERFACE ${${name}_folder}/${headers})
    endif()
  endif()
endmacro()

# Boost's own file first: CMake's FindBoost is deprecated, and CMake 3.30 warns of it.
set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON)
find_package(Threads REQUIRED)
kclxx_require(Boost 1.74 libboost-dev Boost::headers "")
kclxx_require(nlohmann_json 3.11 nlohmann-json3-dev nlohmann_json::nlohmann_json single_include)
if(KCLXX_BUILD_CLI OR KCLXX_BUILD_TESTS)
  kclxx_require(CLI11 2.1 libcli11-dev CLI11::CLI11 include)
endif()
if(KCLXX_BUILD_ARCHIVE AND NOT TARGET CURL::libcurl)
  message(FATAL_ERROR "KCLXX_BUILD_ARCHIVE needs libcurl 7.86 or newer, which was not found. "
    "On Debian and Ubuntu: apt-get install libcurl4-openssl-dev")
endif()
if(KCLXX_BUILD_TESTS)
  if(NOT TARGET Catch2::Catch2)
    find_package(Catch2 3 QUIET)
  endif()
  kclxx_require(Catch2 2.13 catch2 Catch2::Catch2 single_include)
  foreach(folder IN LISTS Catch2_SOURCE_DIR Catch2_folder)
    list(APPEND CMAKE_MODULE_PATH ${folder}/extras ${folder}/contrib)  # Catch.cmake, in 3 and in 2
  endforeach()
endif()
