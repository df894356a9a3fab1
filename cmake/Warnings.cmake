# Warnings and sanitizers for this project's own code; never exported.
add_library(kclxx_warnings INTERFACE)
target_compile_options(kclxx_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  # At -O3 g++ 12 warns wrongly of std::string's operator+ (its bug 105329).
  $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${KCLXX_WARNINGS_AS_ERRORS}>:-Werror>)

if(KCLXX_SANITIZE)
  # g++ 12 with a sanitizer warns wrongly, of <regex> above all.
  target_compile_options(kclxx_warnings INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # For the whole tree: a sanitizer must see the library and its tests alike.
  add_compile_options(-fsanitize=${KCLXX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KCLXX_SANITIZE})
endif()
