//===- FakeNcclMisuse.h - misuses of NCCL that one call shows -------------===//
#pragma once

#include "test/shim/FakeNcclKernel.h"
#include "test/shim/nccl.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shim {

struct NcclMisuse {
  ncclResult_t code;
  std::string sentence;
};

// With the runtime's mutex held. Nothing: the call may go on.

/// Of memory that NCCL reads or writes, which the sentence calls `what`.
std::optional<NcclMisuse> misuseOfBuffer(const ncclComm &one, const void *buffer, uint64_t bytes,
                                         const std::string &what);

/// Of a call by itself: its numbers, addresses and stream.
std::optional<NcclMisuse> misuseOfCall(const ncclComm &one, const NcclOperation &operation, cudaStream_t stream);

} // namespace shim
