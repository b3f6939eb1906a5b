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

# Archives behind what we use of MLIR and LLVM, never their shared libraries beside them. ds-opt starts in a tenth of the time that libMLIR.so
# and libLLVM.so take to be loaded, and needs neither where it runs. Debian's targets all name libLLVM.so, hence the walk.
# ds_archives(NAME LIBRARY...): a library NAME of these and all that they need.
function(ds_archives target)
  set(todo ${ARGN})
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
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE $<LINK_GROUP:RESCAN,${archives}> Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

ds_archives(DSMLIR MLIRFuncDialect MLIROptLib MLIRTransforms LLVMBitstreamReader LLVMRemarks LLVMSupport)
# LLVM's back end for NVIDIA's GPUs. LLVM's checksums are zlib's, which protobuf's package brings along; the archive, so that ds-opt needs no
# library of it where it runs.
ds_archives(DSNVPTX LLVMNVPTXCodeGen LLVMNVPTXDesc LLVMNVPTXInfo)
find_library(ZLIB_ARCHIVE libz.a REQUIRED)
target_link_libraries(DSNVPTX INTERFACE ${ZLIB_ARCHIVE})

# ds_mlir_library(NAME SOURCES sources... LINK libraries... DEPENDS generated... PRECOMPILED target)
# A library of the compiler: linked to MLIR, warnings for deprecated builders are errors.
function(ds_mlir_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} DSMLIR)
  target_compile_options(${name} PRIVATE -Werror=deprecated-declarations)
  ds_use_precompiled(${name} ${ARG_PRECOMPILED})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
