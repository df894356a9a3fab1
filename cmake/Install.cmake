# find_package(kclxx) and pkg-config.
include(CMakePackageConfigHelpers)

install(TARGETS kclxx kclxx_testing EXPORT kclxxTargets FILE_SET HEADERS)
if(KCLXX_BUILD_CLI)
  install(TARGETS kclxx_cli kclxx_share)
  install(DIRECTORY properties/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kclxx/properties)
endif()
if(KCLXX_BUILD_PROMETHEUS)
  install(TARGETS kclxx_prometheus EXPORT kclxxPrometheusTargets FILE_SET HEADERS)
  install(EXPORT kclxxPrometheusTargets NAMESPACE kclxx::
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kclxx)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kclxx)
install(EXPORT kclxxTargets NAMESPACE kclxx:: DESTINATION ${package_dir})

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
foreach(name kclxx kclxx-testing)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()

install(FILES ${PROJECT_BINARY_DIR}/kclxxConfig.cmake ${PROJECT_BINARY_DIR}/kclxxConfigVersion.cmake
  DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_BINARY_DIR}/kclxx.pc ${PROJECT_BINARY_DIR}/kclxx-testing.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
