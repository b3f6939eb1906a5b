//===- LoadMpi.cpp - the MPI transport, where it is installed -------------===//
#include "runtime/comm/LoadMpi.h"

#include "runtime/comm/Transport.h"
#include "runtime/core/Error.h"

#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace ds::runtime {

std::unique_ptr<Transport> loadMpiTransport() {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::string reasons;
  for (const std::filesystem::path &path :
       {folder / "../lib/libDSCommMpi.so", folder / "libDSCommMpi.so", std::filesystem::path("libDSCommMpi.so")}) {
    // Global: Open MPI loads plug-ins that look for its symbols.
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(::dlerror());
      continue;
    }
    using Make = Transport *(*)();
    if (const auto make = reinterpret_cast<Make>(::dlsym(library, "dsMakeMpiTransport")))
      return std::unique_ptr<Transport>(make()); // the library stays loaded
    throw Error("the library " + path.string() + " is not of this ds-run");
  }
  throw Error("a launcher has started several processes, but MPI, by which they would talk, cannot be loaded (" +
                  reasons + "); install Open MPI and a ds-run built with it, or run all ranks in one process with -n",
              "ds-run -n N ...");
}

} // namespace ds::runtime
