//===- NcclSteps.cpp - what a collective is made of for NCCL --------------===//
#include "runtime/comm/nccl/NcclSteps.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ds::runtime {
namespace {

constexpr uint32_t maxCallsOfGroup = 1024; // older NCCLs take 2048

class Issue {
public:
  Issue(const Collective &collective, uint32_t rank, uint32_t ranks, NcclSink &sink)
      : collective_(collective), rank_(rank), ranks_(ranks), sink_(sink) {}

  Status run() noexcept {
    for (const CollectivePart &part : collective_.parts) {
      if (part.count == 0)
        continue;
      if (Status status = part.accumulate && sums() ? accumulate(part) : whole(part); !status.ok())
        return status;
    }
    return close();
  }

private:
  bool sums() const noexcept {
    return collective_.kind == CollectiveKind::ReduceScatter || collective_.kind == CollectiveKind::AllReduce;
  }

  Status call(const NcclCall &call) noexcept {
    if (calls_ == maxCallsOfGroup)
      if (Status status = close(); !status.ok())
        return status;
    if (calls_++ == 0)
      if (Status status = sink_.beginGroup(); !status.ok())
        return status;
    return sink_.call(call);
  }

  Status close() noexcept {
    if (calls_ == 0)
      return Status::success();
    calls_ = 0;
    return sink_.endGroup();
  }

  Status whole(const CollectivePart &part) noexcept {
    const uint64_t bytes = part.count * uint64_t(byteSize(part.dtype));
    switch (collective_.kind) {
    case CollectiveKind::AllGather:
      return call({NcclCall::Kind::AllGather, part.source, part.target, bytes, DType::U8});
    case CollectiveKind::ReduceScatter:
      return call({NcclCall::Kind::ReduceScatter, part.source, part.target, part.count / ranks_, part.dtype});
    case CollectiveKind::AllReduce:
      return call({NcclCall::Kind::AllReduce, part.source, part.target, part.count, part.dtype});
    case CollectiveKind::Broadcast:
      return call({NcclCall::Kind::Broadcast, part.source, part.target, bytes, DType::U8, 0});
    case CollectiveKind::AllToAll:
      return Status::failure("all_to_all of %s: ranks on GPUs exchange no slices as yet; only those on CPUs do",
                             collective_.what);
    }
    return Status::failure("there is no such collective");
  }

  Status accumulate(const CollectivePart &part) noexcept {
    const auto elementBytes = uint64_t(byteSize(part.dtype));
    if (ranks_ == 1) {
      if (Status status = close(); !status.ok())
        return status;
      return sink_.add({part.target, part.source, part.count, part.dtype});
    }
    const uint64_t targetCount = collective_.kind == CollectiveKind::AllReduce ? part.count : part.count / ranks_;
    const uint64_t piece = std::min(targetCount, part.scratch.size() / elementBytes);
    if (piece == 0)
      return Status::failure("%s of %s: its scratch of %zu bytes does not hold one element", name(collective_.kind),
                             collective_.what, part.scratch.size());
    for (uint64_t first = 0; first < targetCount; first += piece) {
      const uint64_t count = std::min(piece, targetCount - first);
      if (Status status = close(); !status.ok()) // what came before still uses the scratch, or was plain
        return status;
      if (Status status = sumPiece(part, first, count, targetCount); !status.ok())
        return status;
      if (Status status = close(); !status.ok())
        return status;
      if (Status status = sink_.add({part.target + first * elementBytes, part.scratch.data(), count, part.dtype});
          !status.ok())
        return status;
    }
    return Status::success();
  }

  /// Elements [first, first + count) of the target's sum, into scratch.
  Status sumPiece(const CollectivePart &part, uint64_t first, uint64_t count, uint64_t targetCount) noexcept {
    const auto elementBytes = uint64_t(byteSize(part.dtype));
    std::byte *scratch = part.scratch.data();
    if (collective_.kind == CollectiveKind::AllReduce)
      return call({NcclCall::Kind::AllReduce, part.source + first * elementBytes, scratch, count, part.dtype});
    if (count == targetCount)
      return call({NcclCall::Kind::ReduceScatter, part.source, scratch, count, part.dtype});
    // Pieces of the ranks' slices do not lie side by side: one reduce to each rank.
    for (uint32_t root = 0; root < ranks_; ++root) {
      const std::byte *source = part.source + (root * targetCount + first) * elementBytes;
      if (Status status =
              call({NcclCall::Kind::Reduce, source, root == rank_ ? scratch : nullptr, count, part.dtype, root});
          !status.ok())
        return status;
    }
    return Status::success();
  }

  const Collective &collective_;
  const uint32_t rank_, ranks_;
  NcclSink &sink_;
  uint32_t calls_ = 0; // of the open group
};

std::string versionText(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

} // namespace

Status issue(const Collective &collective, uint32_t rank, uint32_t ranks, NcclSink &sink) noexcept {
  return Issue(collective, rank, ranks, sink).run();
}

std::string refuseNccl(int found, int builtWith) {
  if (found >= builtWith)
    return "";
  return (found == 0 ? "the NCCL that was found does not tell its version"
                     : "NCCL " + versionText(found) + " was found") +
         ", but this ds-run needs " + versionText(builtWith) +
         " or newer, which it was built with; install it (nvidia-nccl-cu13), or put it first in LD_LIBRARY_PATH";
}

} // namespace ds::runtime
