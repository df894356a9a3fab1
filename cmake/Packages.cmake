# Debian packages: scripts/package, which sets the flags and checks the result, is the way to make them.
#   libkclxx0.2   the shared library         libkclxx-dev   headers, static libraries, CMake and pkg-config files
#   kclxx         the tool and kclxx-share
# What only a package has, its documents above all, is not part of `cmake --install`: EXCLUDE_FROM_ALL.
if(NOT KCLXX_INSTALL OR NOT KCLXX_BUILD_CLI OR NOT KCLXX_BUILD_SHARED)
  return()
endif()
set(library_package libkclxx${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(package_of_runtime ${library_package})
set(package_of_development libkclxx-dev)
set(package_of_tool kclxx)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "kclxx maintainers <maintainers@kclxx.invalid>" CACHE STRING "Maintainer of the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_COMPONENTS_ALL runtime development tool)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, the first line of its description
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/deb/staged.cmake)
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(folder ${PROJECT_BINARY_DIR}/packaging)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${folder}/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_STRICT_PERMISSION ON)  # a checkout's files may be writable for a group
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "C++20 library for children of the Kinesis MultiLangDaemon, shared library
kclxx is a library for programs that consume an Amazon Kinesis data stream as
children of the MultiLangDaemon of the Kinesis Client Library.

This package has the shared library.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkclxx-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, kclxx, libboost-dev (>= 1.74), pkg-config, nlohmann-json3-dev, libcurl4-openssl-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "C++20 library for children of the Kinesis MultiLangDaemon, development files
kclxx is a library for programs that consume an Amazon Kinesis data stream as
children of the MultiLangDaemon of the Kinesis Client Library.

This package has the headers, the static library, the test kit, and files for
CMake and pkg-config.")

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME kclxx)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "default-jre-headless (>= 2:1.17)")
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "libkclxx-dev, maven, nodejs, npm")
set(CPACK_DEBIAN_TOOL_DESCRIPTION "tool for the Kinesis MultiLangDaemon and its children
Tests, records and replays the dialogue of the MultiLangDaemon with a child
in any language; fetches, checks and runs the daemon; runs a local Kinesis.

Java and Maven are for the daemon; the local Kinesis needs Node.js, too.")

# The documents of each package. A timestamp is that of SOURCE_DATE_EPOCH, if this is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
find_program(KCLXX_GZIP gzip REQUIRED)
function(kclxx_gzip from to)
  execute_process(COMMAND ${KCLXX_GZIP} -9nc ${from} OUTPUT_FILE ${to} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set(changelog "@package@ (@version@) unstable; urgency=medium

  * kclxx @PROJECT_VERSION@. The package libkclxx-dev has the list of changes.

 -- @CPACK_PACKAGE_CONTACT@  @date@
")
file(WRITE ${folder}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kclxx

Files: *
Copyright: 2026 the kclxx authors
License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
")
# What lintian is to pass over.
set(overrides_of_runtime
"# CPack writes these scripts for each package with a library; the trigger, which is there too, is what Debian wants.
@package@: maintscript-calls-ldconfig [postinst]
@package@: maintscript-calls-ldconfig [postrm]
")
set(overrides_of_tool
"# One launcher waits for each shard, so it is as small as it can be made: docs/architecture.md, \"Decisions\".
kclxx: statically-linked-binary [usr/bin/kclxx-share]
")
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(package ${package_of_${component}})
  file(CONFIGURE OUTPUT ${folder}/${package}.changelog CONTENT "${changelog}" @ONLY)
  kclxx_gzip(${folder}/${package}.changelog ${folder}/${package}.changelog.gz)
  install(FILES ${folder}/${package}.changelog.gz RENAME changelog.Debian.gz
    DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${folder}/copyright DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  if(DEFINED overrides_of_${component})
    file(CONFIGURE OUTPUT ${folder}/${package}.overrides CONTENT "${overrides_of_${component}}" @ONLY)
    install(FILES ${folder}/${package}.overrides RENAME ${package}
      DESTINATION share/lintian/overrides COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endforeach()
kclxx_gzip(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${folder}/changelog.gz)
install(FILES ${folder}/changelog.gz DESTINATION share/doc/libkclxx-dev COMPONENT development EXCLUDE_FROM_ALL)

set(CPACK_KCLXX_STRIP ${CMAKE_STRIP})
include(CPack)
