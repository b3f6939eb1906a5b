# Headers that many files include are read once, precompiled, and not once a file: MLIR's and our dialects' are 6 of the 8 s that such a
# file takes, protobuf's and GoogleTest's 2 of 4. Each file still includes what it needs, so that it compiles without them
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON), and no target gets headers that its folder may not include.
#
# A compiler cache shares them between checkouts: their bytes are the same wherever they are made, and scripts/build.sh sets
# CCACHE_SLOPPINESS, without which ccache takes no file that uses them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(DS_PRECOMPILED_OPTIONS -fpch-preprocess)
else()
  set(DS_PRECOMPILED_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
endif()
if(DS_ENABLE_FUZZERS) # what a fuzzer links is compiled with this, and clang wants it of all users of a precompiled header
  list(APPEND DS_PRECOMPILED_OPTIONS -fsanitize=fuzzer-no-link)
endif()

# ds_precompiled(NAME HEADERS headers... GENERATED files that they include... DEPENDS targets... [EXECUTABLES])
# For libraries, or for EXECUTABLES: compilers want the same kind of position-independent code.
function(ds_precompiled name)
  cmake_parse_arguments(ARG "EXECUTABLES" "" "HEADERS;GENERATED;DEPENDS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// Stands for the headers that are precompiled with it.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp ${ARG_GENERATED})
  target_compile_options(${name} PRIVATE ${DS_PRECOMPILED_OPTIONS})
  if(ARG_EXECUTABLES)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)
  endif()
  list(TRANSFORM ARG_HEADERS PREPEND "<")
  list(TRANSFORM ARG_HEADERS APPEND ">")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(CCACHE)
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile_precompiled.sh;${CCACHE}")
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# ds_use_precompiled(TARGET NAME)
function(ds_use_precompiled target name)
  target_compile_options(${target} PRIVATE ${DS_PRECOMPILED_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()
