//===- LoadCuda.cpp - the library for NVIDIA GPUs, where it is installed --===//
#include "runtime/plugins/LoadCuda.h"

#include "core/Error.h"
#include "runtime/plugins/CudaLibrary.h"

#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

namespace ds::runtime {

const CudaLibrary *findCuda(std::string &why) {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::filesystem::path found;
  for (const std::filesystem::path &path : {folder / "../lib/libds-cuda.so", folder / "libds-cuda.so"})
    if (found.empty() && std::filesystem::exists(path, none))
      found = path;
  if (found.empty()) {
    why = "libds-cuda.so is neither in ../lib nor beside ds-run; build it with DS_ENABLE_CUDA";
    return nullptr;
  }
  void *library = ::dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = std::string(::dlerror()) + "; install NVIDIA's libraries or name their folders in LD_LIBRARY_PATH";
    return nullptr;
  }
  using Find = const CudaLibrary *(*)();
  const auto find = reinterpret_cast<Find>(::dlsym(library, "dsCudaLibrary"));
  const CudaLibrary *cuda = find != nullptr ? find() : nullptr;
  if (cuda == nullptr || cuda->form != CudaLibrary::currentForm) {
    why = "the libds-cuda.so that was found is not of this ds-run; install both together";
    return nullptr;
  }
  return cuda;
}

const CudaLibrary &loadCuda() {
  std::string why;
  if (const CudaLibrary *cuda = findCuda(why))
    return *cuda;
  throw Error("device cuda is not available: " + why);
}

} // namespace ds::runtime
