# Finds Debian's MLIR 22 and gives the directories included after it MLIR's flags and helpers.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR}) # else add_mlir_doc writes to /docs
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(DS_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${DS_LLVM_DEFINITIONS})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
set(LLVM_EXTERNAL_LIT ${CMAKE_SOURCE_DIR}/build/venv/bin/lit)

# DSMLIR: the archives behind what we use of MLIR, never its shared library beside them. ds-opt starts in a tenth of the time that libMLIR.so
# and libLLVM.so take to be loaded, and needs neither where it runs. Debian's targets all name libLLVM.so, hence the walk.
set(todo MLIRFuncDialect MLIROptLib MLIRTransforms LLVMBitstreamReader LLVMRemarks LLVMSupport)
set(archives "")
while(todo)
  list(POP_FRONT todo name)
  set(archive ${LLVM_LIBRARY_DIR}/lib${name}.a)
  if(NOT name MATCHES "^(MLIR|LLVM).+" OR archive IN_LIST archives)
    continue()
  endif()
  list(APPEND archives ${archive})
  get_target_property(needs ${name} INTERFACE_LINK_LIBRARIES)
  if(needs)
    list(APPEND todo ${needs})
  endif()
endwhile()
list(JOIN archives "," archives)
add_library(DSMLIR INTERFACE)
target_link_libraries(DSMLIR INTERFACE $<LINK_GROUP:RESCAN,${archives}> Threads::Threads ${CMAKE_DL_LIBS})

# MLIR's headers, and those of our dialects, are most of what it costs to compile a file of the compiler: 6 of 8 s. They are compiled once
# (ds_precompiled below) for the libraries that name the result. A compiler cache shares it between checkouts where it may take
# its bytes for its contents (scripts/build.sh sets CCACHE_SLOPPINESS).
set(DS_MLIR_OPTIONS -Werror=deprecated-declarations)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND DS_MLIR_OPTIONS -fpch-preprocess)
else()
  list(APPEND DS_MLIR_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
endif()
if(DS_ENABLE_FUZZERS)
  list(APPEND DS_MLIR_OPTIONS -fsanitize=fuzzer-no-link) # else a fuzzer does not see which branches its bytes take
endif()

# ds_precompiled(NAME headers... DEPENDS generated...): headers that ds_mlir_library(... PRECOMPILED NAME) includes first.
function(ds_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// Stands for the headers that are precompiled with it.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_compile_options(${name} PRIVATE ${DS_MLIR_OPTIONS})
  list(TRANSFORM ARG_HEADERS PREPEND "<")
  list(TRANSFORM ARG_HEADERS APPEND ">")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# ds_mlir_library(NAME SOURCES sources... LINK libraries... DEPENDS generated... PRECOMPILED target)
# A library of the compiler: linked to MLIR, warnings for deprecated builders are errors.
function(ds_mlir_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} DSMLIR)
  target_compile_options(${name} PRIVATE ${DS_MLIR_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM ${ARG_PRECOMPILED})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
