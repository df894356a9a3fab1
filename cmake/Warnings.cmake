# Warnings and sanitizers for this project's own code; never exported.
add_library(kclxx_warnings INTERFACE)
target_compile_options(kclxx_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  $<$<BOOL:${KCLXX_WARNINGS_AS_ERRORS}>:-Werror>)

if(KCLXX_SANITIZE)
  # For the whole tree: a sanitizer must see the library and its tests alike.
  add_compile_options(-fsanitize=${KCLXX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KCLXX_SANITIZE})
endif()
