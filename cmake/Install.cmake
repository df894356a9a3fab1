# find_package(kclxx) and pkg-config. The components are the Debian packages that cmake/Packages.cmake makes of them.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kclxx)

# A shared library for programs, and what links with it.
set(library_destinations
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
install(TARGETS kclxx kclxx_testing EXPORT kclxxTargets ${library_destinations})
set(exports kclxxTargets)
if(KCLXX_BUILD_SHARED)
  install(TARGETS kclxx_shared EXPORT kclxxSharedTargets ${library_destinations})
  list(APPEND exports kclxxSharedTargets)
endif()
set(optional_headers PATTERN archive EXCLUDE)
if(KCLXX_BUILD_ARCHIVE)
  install(TARGETS kclxx_archive EXPORT kclxxArchiveTargets ${library_destinations})
  list(APPEND exports kclxxArchiveTargets)
  set(optional_headers "")
endif()
foreach(export IN LISTS exports)
  install(EXPORT ${export} NAMESPACE kclxx:: DESTINATION ${package_dir} COMPONENT development)
endforeach()
install(DIRECTORY include/kclxx ${PROJECT_BINARY_DIR}/include/kclxx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development ${optional_headers})

if(KCLXX_BUILD_CLI)
  install(TARGETS kclxx_cli kclxx_share RUNTIME COMPONENT tool)
  install(DIRECTORY properties/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kclxx/properties COMPONENT tool)
endif()

configure_package_config_file(cmake/kclxxConfig.cmake.in ${PROJECT_BINARY_DIR}/kclxxConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kclxxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

# Relative, so that an installed tree can be moved; the way up depends on the libdir's depth.
file(RELATIVE_PATH KCLXX_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(KCLXX_PC_LIBDIR "\${prefix}")
set(KCLXX_PC_INCLUDEDIR "\${prefix}")
# Nix and Guix set absolute ones.
cmake_path(APPEND KCLXX_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND KCLXX_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
set(pc_files "")
function(kclxx_pc name description requires libs)
  configure_file(cmake/kclxx.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  set(pc_files ${pc_files} ${PROJECT_BINARY_DIR}/${name}.pc PARENT_SCOPE)
endfunction()
# With both libraries in a directory -lkclxx would be the shared one, whose internals the test kit does not see.
get_target_property(type kclxx TYPE)
if(type STREQUAL "STATIC_LIBRARY")
  set(library "\${libdir}/${CMAKE_STATIC_LIBRARY_PREFIX}kclxx${CMAKE_STATIC_LIBRARY_SUFFIX}")
else()
  set(library "-L\${libdir} -lkclxx")
endif()
kclxx_pc(kclxx "${PROJECT_DESCRIPTION}" "" "${library} -pthread")
set(own_version "kclxx = ${PROJECT_VERSION}")
kclxx_pc(kclxx-testing "The test kit of kclxx" "${own_version}" "\${libdir}/libkclxx_testing.a")
if(KCLXX_BUILD_ARCHIVE)
  kclxx_pc(kclxx-archive "Exactly-once archives in a folder or in S3, with kclxx" "${own_version}, libcurl"
    "\${libdir}/libkclxx_archive.a")
endif()

install(FILES ${PROJECT_BINARY_DIR}/kclxxConfig.cmake ${PROJECT_BINARY_DIR}/kclxxConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
install(FILES ${pc_files}
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)
