# Warnings and sanitizers for this project's own code; never exported.
add_library(kclxx_warnings INTERFACE)
target_compile_options(kclxx_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  # In a unity build a local name may be that of a constant of another file. To g++ each source is then a header, in
  # which a local type is a fault, and it warns wrongly of std::variant.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  $<$<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage;-Wno-maybe-uninitialized>
  # At -O3 g++ 12 warns wrongly of std::string's operator+ (its bug 105329).
  $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${KCLXX_WARNINGS_AS_ERRORS}>:-Werror>)

if(KCLXX_SANITIZE)
  # Each of our targets has them, and each program that links one: the library and its tests alike.
  target_compile_options(kclxx_warnings INTERFACE
    -fsanitize=${KCLXX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # g++ 12 with a sanitizer warns wrongly, of <regex> above all.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(kclxx_warnings INTERFACE -fsanitize=${KCLXX_SANITIZE})
endif()
if(KCLXX_SANITIZE MATCHES thread)
  # It does not know the fence with which Asio ends a count of its own; Boost's counts have none.
  target_compile_definitions(kclxx_warnings INTERFACE BOOST_ASIO_DISABLE_STD_ATOMIC)
endif()
if(KCLXX_SANITIZE MATCHES undefined)
  # clang 14 cannot compile a coroutine with this check: "difference across sections".
  target_compile_options(kclxx_warnings INTERFACE
    $<$<BOOL:$<TARGET_PROPERTY:KCLXX_HAS_COROUTINES>>:-fno-sanitize=function>)
endif()
