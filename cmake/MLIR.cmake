# Finds Debian's MLIR 22 and gives the directories included after it MLIR's flags and helpers.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR}) # else add_mlir_doc writes to /docs
set(MLIR_LINK_MLIR_DYLIB ON)             # one libMLIR.so; never mixed with its static archives
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(DS_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${DS_LLVM_DEFINITIONS})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
set(LLVM_EXTERNAL_LIT ${CMAKE_SOURCE_DIR}/build/venv/bin/lit)

# ds_mlir_library(NAME SOURCES sources... LINK libraries... DEPENDS generated... PRECOMPILED target)
# A library of the compiler: linked to libMLIR.so, warnings for deprecated builders are errors.
function(ds_mlir_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  target_compile_options(${name} PRIVATE -Werror=deprecated-declarations)
  ds_use_precompiled(${name} ${ARG_PRECOMPILED})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
