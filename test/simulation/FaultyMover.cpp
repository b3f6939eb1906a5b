//===- FaultyMover.cpp - faults within collectives and messages -----------===//
#include "test/simulation/FaultyMover.h"

#include "test/simulation/Faults.h"

namespace ds::sim {
namespace {

using runtime::ByteMover;

class FaultyMover final : public ByteMover {
public:
  explicit FaultyMover(uint32_t rank) : rank_(rank), inner_(runtime::makeHostMover(rank)) {}

  Status mark(uint64_t mark, void *stream) noexcept override {
    return after(Place::Arrive, rank_, "a collective or message", [&] { return inner_->mark(mark, stream); });
  }
  Status follow(const ByteMover &peer, uint64_t mark, void *stream) noexcept override {
    return after(Place::Follow, rank_, "a collective or message",
                 [&] { return inner_->follow(*static_cast<const FaultyMover &>(peer).inner_, mark, stream); });
  }
  Status copy(std::byte *target, const std::byte *source, uint64_t bytes, void *stream) noexcept override {
    return after(Place::Move, rank_, "a collective or message",
                 [&] { return inner_->copy(target, source, bytes, stream); });
  }
  Status sum(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count, bool accumulate,
             void *stream) noexcept override {
    return after(Place::Move, rank_, "a collective or message",
                 [&] { return inner_->sum(dtype, addends, target, count, accumulate, stream); });
  }

private:
  const uint32_t rank_;
  const std::unique_ptr<ByteMover> inner_;
};

} // namespace

std::unique_ptr<ByteMover> makeFaultyMover(uint32_t rank) { return std::make_unique<FaultyMover>(rank); }

} // namespace ds::sim
