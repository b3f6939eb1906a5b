//===- NoNccl.cpp - an NCCL that connects nobody --------------------------===//
//
// Ranks of one process do without it.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "runtime/comm/nccl/NcclTransport.h"
#include "runtime/comm/nccl/NcclVersion.h"
#include "test/shim/FakeRuntime.h"

#include <memory>

namespace ds::runtime {

int ncclVersion() noexcept { return 0; }

std::unique_ptr<Transport> makeNcclTransport(std::unique_ptr<ControlPlane>, int) {
  throw Error("there is no NCCL here, and modules are loaded " + shim::moduleLoading() +
              "; run all ranks in one process");
}

} // namespace ds::runtime
