# What a build needs, from the distribution; a missing one is named with its Debian package, or downloaded if
# KCLXX_FETCH_DEPENDENCIES is set. The library needs Boost and simdjson; nlohmann_json is for the daemon model (so for
# the test kit) and for the tool.

# Boost alone is not downloaded: each platform has 1.74 or newer, and its archive is 100 times the size of the others.
set(KCLXX_simdjson_archive simdjson/simdjson 3.0.1
  156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed)
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

function(kclxx_headers_target target folder)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${folder})
endfunction()

# A macro, since a package's find script may set variables for its caller.
macro(kclxx_require name version package)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    # simdjson's own file of versions accepts no other minor version than the one that is asked for.
    foreach(found IN LISTS ${name}_CONSIDERED_VERSIONS)
      if(NOT found STREQUAL "unknown" AND found VERSION_GREATER_EQUAL ${version})
        find_package(${name} ${found} QUIET)
      endif()
    endforeach()
  endif()
  if(NOT ${name}_FOUND)
    if(KCLXX_FETCH_DEPENDENCIES AND DEFINED KCLXX_${name}_archive)
      include(FetchContent)
      kclxx_fetch(${name})
    else()
      message(FATAL_ERROR
        "kclxx needs ${name} ${version} or newer, which was not found. "
        "On Debian and Ubuntu: apt-get install ${package} "
        "(docs/install.md has other platforms, and KCLXX_FETCH_DEPENDENCIES)")
    endif()
  endif()
endmacro()

# Boost's own file first: CMake's FindBoost is deprecated, and CMake 3.30 warns of it.
set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON)
find_package(Threads REQUIRED)
kclxx_require(Boost 1.74 libboost-dev)
kclxx_require(nlohmann_json 3.11 nlohmann-json3-dev)
if(DEFINED nlohmann_json_folder)
  kclxx_headers_target(nlohmann_json::nlohmann_json ${nlohmann_json_folder}/single_include)
endif()
kclxx_require(simdjson 3.0 libsimdjson-dev)
if(DEFINED simdjson_folder)
  # Installed beside libkclxx, in a namespace of its own, since a program may have another simdjson.
  add_library(kclxx_simdjson STATIC ${simdjson_folder}/singleheader/simdjson.cpp)
  add_library(simdjson::simdjson ALIAS kclxx_simdjson)
  target_compile_features(kclxx_simdjson PRIVATE cxx_std_17)
  target_compile_definitions(kclxx_simdjson PUBLIC $<BUILD_INTERFACE:simdjson=kclxx_simdjson>)
  target_include_directories(kclxx_simdjson SYSTEM PUBLIC $<BUILD_INTERFACE:${simdjson_folder}/singleheader>)
  set_target_properties(kclxx_simdjson PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endif()
if(KCLXX_BUILD_CLI OR KCLXX_BUILD_TESTS)
  kclxx_require(CLI11 2.1 libcli11-dev)
  if(DEFINED CLI11_folder)
    kclxx_headers_target(CLI11::CLI11 ${CLI11_folder}/include)
  endif()
endif()
if(KCLXX_BUILD_ARCHIVE AND NOT TARGET CURL::libcurl)
  message(FATAL_ERROR "KCLXX_BUILD_ARCHIVE needs libcurl 7.86 or newer, which was not found. "
    "On Debian and Ubuntu: apt-get install libcurl4-openssl-dev")
endif()
if(KCLXX_BUILD_TESTS)
  find_package(Catch2 3 QUIET)
  if(NOT Catch2_FOUND)
    kclxx_require(Catch2 2.13 catch2)
    if(DEFINED Catch2_folder)
      kclxx_headers_target(Catch2::Catch2 ${Catch2_folder}/single_include)
      list(APPEND CMAKE_MODULE_PATH ${Catch2_folder}/contrib)
    endif()
  endif()
endif()
