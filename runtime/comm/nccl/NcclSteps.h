//===- NcclSteps.h - what a collective is made of for NCCL ----------------===//
//
// Plain logic without NCCL, so that it is tested where there is no GPU.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::runtime {

/// One call of NCCL.
struct NcclCall {
  enum class Kind : uint8_t { AllGather, ReduceScatter, AllReduce, Broadcast, Reduce };
  Kind kind;
  const std::byte *source;
  std::byte *target; ///< nullptr for ranks other than the root of a reduce
  uint64_t count;    ///< as NCCL counts: elements of the target for reduce_scatter, of the source for all else
  DType dtype;       ///< U8 where bytes are only moved
  uint32_t root = 0; ///< broadcast, reduce
};

/// target += addend, element by element.
struct Addition {
  std::byte *target;
  const std::byte *addend;
  uint64_t count;
  DType dtype;
};

/// Carries out or enqueues, in order.
class NcclSink {
public:
  virtual ~NcclSink() = default;
  virtual Status beginGroup() noexcept = 0;
  virtual Status call(const NcclCall &call) noexcept = 0;
  virtual Status endGroup() noexcept = 0;
  virtual Status add(const Addition &addition) noexcept = 0;
};

/// Gives `sink` the steps of a collective for `rank` of `ranks`. Parts stand in one group, as many as NCCL allows.
/// NCCL overwrites targets, so a part that accumulates is summed into its scratch, then added to its target; such parts
/// share scratch and take turns. Where scratch holds less than a target, it happens in pieces.
Status issue(const Collective &collective, uint32_t rank, uint32_t ranks, NcclSink &sink) noexcept;

/// Why this NCCL cannot be used, or "". Versions as NCCL_VERSION_CODE.
std::string refuseNccl(int found, int builtWith);

} // namespace ds::runtime
