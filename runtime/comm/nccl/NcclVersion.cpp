//===- NcclVersion.cpp - which NCCL this process has loaded ---------------===//
#include "runtime/comm/nccl/NcclVersion.h"

#include <nccl.h>

namespace ds::runtime {

int ncclVersion() noexcept {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

} // namespace ds::runtime
