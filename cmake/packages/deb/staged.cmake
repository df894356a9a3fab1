# Run by CPack before it packs what a component has installed. Static libraries keep no debug information, as in
# Debian's packages, and nothing is younger than SOURCE_DATE_EPOCH, so that two builds give the same bytes.
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.a)
foreach(library IN LISTS libraries)
  execute_process(COMMAND ${CPACK_KCLXX_STRIP} --strip-debug --enable-deterministic-archives ${library}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# CMake knows no modes below this one for a folder that it makes.
execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} -type d -exec chmod 755 {} + COMMAND_ERROR_IS_FATAL ANY)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
