//===- RankState.cpp - the state of a rank, a piece at a time -------------===//
#include "runtime/checkpoint/RankState.h"

#include "core/DType.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ds::runtime {

RankState::RankState(const Executor &executor, const plan::proto::Plan &plan, std::span<const HeldPart> parts)
    : executor_(executor), plan_(plan), parts_(parts), piece_(pieceBytes) {}

std::span<const std::byte> RankState::next() {
  while (part_ < parts_.size() && element_ == parts_[part_].count) {
    ++part_;
    element_ = 0;
  }
  if (part_ == parts_.size())
    return {};
  const HeldPart &part = parts_[part_];
  const auto elementBytes = uint64_t(byteSize(DType(plan_.variables(int(part.variable)).dtype())));
  const uint64_t elements = std::min(pieceBytes / elementBytes, part.count - element_);
  const auto bytes = std::span(piece_).first(elements * elementBytes);
  executor_.read(part, element_, bytes);
  element_ += elements;
  return bytes;
}

} // namespace ds::runtime
