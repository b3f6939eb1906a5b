//===- FakeNcclMisuse.cpp - misuses of NCCL that one call shows -----------===//
#include "test/shim/FakeNcclMisuse.h"

#include "test/shim/Streams.h"

#include <cstddef>

namespace shim {

namespace {

/// By the "In-place Operations" of NCCL's guide.
std::optional<NcclMisuse> misuseOfOverlap(const ncclComm &one, const NcclOperation &operation) {
  const NcclCall &call = operation.call;
  const uint64_t sourceBytes = call.sourceBytes(one.rank, one.ranks), own = call.count * call.elementBytes();
  const std::byte *source = operation.source, *target = operation.target;
  if (sourceBytes == 0 || target == nullptr || source + sourceBytes <= target ||
      target + call.targetBytes(one.rank, one.ranks) <= source)
    return std::nullopt;
  const auto rank = uint64_t(one.rank);
  const bool inPlace = call.kind == NcclCall::AllGather       ? source == target + rank * own
                       : call.kind == NcclCall::ReduceScatter ? target == source + rank * own
                                                              : source == target;
  if (inPlace)
    return std::nullopt;
  return NcclMisuse{ncclInvalidArgument,
                    "source and target of " + call.text() + " overlap, and are not in place: " +
                        (call.kind == NcclCall::AllGather       ? "that is source = target + rank * count"
                         : call.kind == NcclCall::ReduceScatter ? "that is target = source + rank * count"
                                                                : "that is source = target")};
}

std::optional<NcclMisuse> misuseOfNumbers(const ncclComm &one, const NcclOperation &operation) {
  const NcclCall &call = operation.call;
  if (call.other >= one.ranks || call.other < -1 || (call.isMessage() && call.other < 0))
    return NcclMisuse{ncclInvalidArgument, "rank " + std::to_string(call.other) + " of a communicator of " +
                                               std::to_string(one.ranks) + " is the other end of " + call.text()};
  if (call.isMessage() && call.other == one.rank)
    return NcclMisuse{ncclInvalidArgument, "a message to oneself, which the fake does not know"};
  if (call.sum > 0)
    return NcclMisuse{ncclInvalidArgument, "the fake knows sums only, and this is " + call.text()};
  const bool isFloat = call.type >= ncclFloat16 && call.type <= ncclBfloat16;
  if (call.sum >= 0 && !isFloat && call.type != ncclInt64)
    return NcclMisuse{ncclInvalidArgument, "a sum of what the fake does not add: " + call.text() +
                                               "; bytes of wider numbers would be added one by one"};
  return std::nullopt;
}

std::optional<NcclMisuse> misuseOfStream(const ncclComm &one, cudaStream_t stream) {
  if (stream == nullptr || !isLive(stream))
    return NcclMisuse{ncclInvalidArgument, "a call on what is no stream"};
  if (stream->device != one.gpu)
    return NcclMisuse{ncclInvalidUsage, "a stream of GPU " + std::to_string(stream->device) +
                                            " for a communicator of GPU " + std::to_string(one.gpu)};
  return std::nullopt;
}

} // namespace

std::optional<NcclMisuse> misuseOfBuffer(const ncclComm &one, const void *buffer, uint64_t bytes,
                                         const std::string &what) {
  if (bytes == 0)
    return std::nullopt;
  const std::string where = what + " of rank " + std::to_string(one.rank);
  const Allocation *allocation = buffer == nullptr ? nullptr : allocationAt(buffer);
  const Allocation *last = allocationAt(static_cast<const std::byte *>(buffer) + bytes - 1);
  if (buffer == nullptr)
    return NcclMisuse{ncclInvalidArgument, where + " is null"};
  if (allocation == nullptr)
    return NcclMisuse{ncclInvalidArgument, where + " is memory that is not CUDA's"};
  if (allocation->freed)
    return NcclMisuse{ncclInvalidArgument, where + " is memory that was freed"};
  if (allocation != last)
    return NcclMisuse{ncclInvalidArgument, where + " reaches beyond its memory"};
  if (allocation->device >= 0 && allocation->device != one.gpu)
    return NcclMisuse{ncclInvalidArgument, where + " is memory of GPU " + std::to_string(allocation->device) +
                                               ", and the communicator is of GPU " + std::to_string(one.gpu)};
  return std::nullopt;
}

std::optional<NcclMisuse> misuseOfCall(const ncclComm &one, const NcclOperation &operation, cudaStream_t stream) {
  const NcclCall &call = operation.call;
  if (auto found = misuseOfNumbers(one, operation))
    return found;
  if (auto found =
          misuseOfBuffer(one, operation.source, call.sourceBytes(one.rank, one.ranks), "the source of " + call.text()))
    return found;
  if (auto found =
          misuseOfBuffer(one, operation.target, call.targetBytes(one.rank, one.ranks), "the target of " + call.text()))
    return found;
  if (auto found = misuseOfOverlap(one, operation))
    return found;
  return misuseOfStream(one, stream);
}

} // namespace shim
