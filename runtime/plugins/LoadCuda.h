//===- LoadCuda.h - the library for NVIDIA GPUs, where it is installed ----===//
#pragma once

#include "runtime/plugins/CudaLibrary.h"

#include <string>

namespace ds::runtime {

/// The library libds-cuda.so, which lies beside the executable or in ../lib and stays loaded; nullptr and why not, if
/// it or one of NVIDIA's libraries that it needs is missing or is of another ds-run.
const CudaLibrary *findCuda(std::string &why);

/// The same, or throws ds::Error.
const CudaLibrary &loadCuda();

} // namespace ds::runtime
