# find_package(simdjson) with -Dsimdjson_DIR=<this folder in the cache>: built from source, static.
if(NOT TARGET simdjson::simdjson)
  set(simdjson_source ${CMAKE_CURRENT_LIST_DIR}/node_modules/@nozbe/simdjson/src)
  add_library(simdjson STATIC ${simdjson_source}/simdjson.cpp)
  target_include_directories(simdjson SYSTEM INTERFACE ${simdjson_source})
  target_compile_features(simdjson PUBLIC cxx_std_17)
  add_library(simdjson::simdjson ALIAS simdjson)
endif()
