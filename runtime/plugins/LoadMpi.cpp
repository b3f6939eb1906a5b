//===- LoadMpi.cpp - the MPI transport, where it is installed -------------===//
#include "runtime/plugins/LoadMpi.h"

#include "core/Error.h"
#include "runtime/comm/Transport.h"

#include <chrono>
#include <cstdint>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace ds::runtime {

namespace {

/// The library, which stays loaded, or nullptr and why.
void *openLibrary(std::string &reasons) {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  for (const std::filesystem::path &path :
       {folder / "../lib/libDSCommMpi.so", folder / "libDSCommMpi.so", std::filesystem::path("libDSCommMpi.so")}) {
    // Global: Open MPI loads plug-ins that look for its symbols.
    if (void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return library;
    reasons += (reasons.empty() ? "" : "; ") + std::string(::dlerror());
  }
  return nullptr;
}

} // namespace

bool hasMpi() {
  std::string reasons;
  return openLibrary(reasons) != nullptr;
}

std::unique_ptr<Transport> loadMpiTransport(std::chrono::milliseconds timeout) {
  std::string reasons;
  void *library = openLibrary(reasons);
  if (library == nullptr)
    throw Error("a launcher has started several processes, but MPI, by which they would talk, cannot be loaded (" +
                    reasons + "); install Open MPI and a ds-run built with it, or run all ranks in one process with -n",
                "ds-run -n N ...");
  using Make = Transport *(*)(int64_t timeoutMs);
  const auto make = reinterpret_cast<Make>(::dlsym(library, "dsMakeMpiTransport"));
  if (make == nullptr)
    throw Error("the library libDSCommMpi.so that was found is not of this ds-run; install both together");
  return std::unique_ptr<Transport>(make(timeout.count()));
}

} // namespace ds::runtime
