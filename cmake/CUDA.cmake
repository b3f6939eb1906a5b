# The CUDA toolkit, and NVIDIA's libraries from its wheels (scripts/install-cuda.sh) or from the system. Everything built with
# them goes into libds-cuda.so, which ds-run loads when a plan asks for it.
#
# Defines the targets DSCudaRuntime (cudart, static), DSCublasLt, DSCudnn and DSNccl, and ds_cuda_library().
set(DS_CUDA_WHEELS "" CACHE PATH
    "Folder that NVIDIA's wheels were installed into (it holds nvidia/); empty: libraries of the system")

find_program(CMAKE_CUDA_COMPILER nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "DS_ENABLE_CUDA needs nvcc 13, which is neither on PATH nor in /usr/local/cuda/bin; install the CUDA "
                      "toolkit, set CUDA_HOME, or leave DS_ENABLE_CUDA off")
endif()
set(CMAKE_CUDA_ARCHITECTURES OFF) # named below: CMake 3.25 does not know 90a
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # nor nvcc's C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "DS_ENABLE_CUDA needs nvcc 13, and ${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_VERSION}; "
                      "set CUDA_HOME to a newer toolkit")
endif()
find_package(CUDAToolkit 13.0 REQUIRED)

# Machine code for Ampere and Hopper; PTX, which a driver compiles, for what comes later. runtime/device/cuda/GpuVerdicts.h says so
# to people whose GPU is none of these.
set(DS_CUDA_CODE "sm_80;sm_90a;compute_90" CACHE STRING "what kernels are compiled to: machine code (sm_*), PTX (compute_*)")
foreach(code IN LISTS DS_CUDA_CODE)
  string(REGEX REPLACE "^[a-z]+_" "" number ${code})
  string(APPEND CMAKE_CUDA_FLAGS " -gencode=arch=compute_${number},code=${code}")
endforeach()

add_library(DSCudaRuntime INTERFACE)
target_include_directories(DSCudaRuntime SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(DSCudaRuntime INTERFACE CUDA::cudart_static)

# One library: DS_FIND NAME HEADER FILE FOLDER (of the wheel).
function(ds_find_cuda_library name header file folder)
  string(TOUPPER ${name} upper)
  set(hints "")
  if(DS_CUDA_WHEELS)
    set(hints HINTS ${DS_CUDA_WHEELS}/nvidia/${folder} NO_DEFAULT_PATH)
  else()
    set(hints HINTS ${CUDAToolkit_TARGET_DIR})
  endif()
  find_path(${upper}_INCLUDE_DIR ${header} ${hints} PATH_SUFFIXES include)
  find_library(${upper}_LIBRARY NAMES ${file} ${hints} PATH_SUFFIXES lib lib64)
  if(NOT ${upper}_INCLUDE_DIR OR NOT ${upper}_LIBRARY)
    message(FATAL_ERROR "${header} or ${file} is not there (looked in '${DS_CUDA_WHEELS}' and the system); run "
                        "scripts/install-cuda.sh and configure with -DDS_CUDA_WHEELS=build/cuda-wheels, or install the library")
  endif()
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${${upper}_LIBRARY})
  target_include_directories(${name} SYSTEM INTERFACE ${${upper}_INCLUDE_DIR})
  target_link_libraries(${name} INTERFACE DSCudaRuntime)
endfunction()
ds_find_cuda_library(DSCublasLt cublasLt.h libcublasLt.so.13 cu13)
ds_find_cuda_library(DSCudnn cudnn.h libcudnn.so.9 cudnn)
# cuDNN's graphs are written with NVIDIA's headers over them.
if(DS_CUDA_WHEELS)
  set(frontend_hints HINTS ${DS_CUDA_WHEELS} NO_DEFAULT_PATH)
endif()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h ${frontend_hints} PATH_SUFFIXES include)
if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  message(FATAL_ERROR "cudnn_frontend.h is not there (looked in '${DS_CUDA_WHEELS}' and the system); run scripts/install-cuda.sh")
endif()
target_include_directories(DSCudnn SYSTEM INTERFACE ${CUDNN_FRONTEND_INCLUDE_DIR})
ds_find_cuda_library(DSNccl nccl.h libnccl.so.2 nccl)

# ds_cuda_library(NAME SOURCES .cpp and .cu... LINK libraries...): a part of libds-cuda.so; every warning is an error, of the
# host compiler and of the device's.
function(ds_cuda_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC DSCore DSCudaRuntime Threads::Threads ${ARG_LINK})
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings
      -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter,-Werror,-ffp-contract=off>)
endfunction()
