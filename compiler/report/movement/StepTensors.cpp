//===- StepTensors.cpp - the tensors of a step, wherever they lie -----------===//
//
// 1. Cut every buffer where an operand of any command begins or ends; a copy carries cuts from one of its ends to the
//    other.
// 2. Walk the commands in an order in which they can run. Each piece of each buffer holds a tensor. A write puts a new
//    one there, a copy between memories puts there what its source holds, all else uses what is there.
// 3. What a piece of a buffer that outlives the step holds in the end is what the next step finds there.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/movement/StepTensors.h"

#include "compiler/report/movement/Transfer.h"
#include "compiler/scheduling/TensorUses.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/StepClock.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Command;
using plan::proto::Operand;
using plan::proto::Plan;
using plan::proto::Queue;
using plan::proto::Role;
using scheduling::TensorUse;
using scheduling::UsedTensor;

template <typename Visit> void forEachOperand(const Command &command, Visit &&visit) {
  switch (command.kind_case()) {
  case Command::kKernel:
    std::ranges::for_each(command.kernel().operands(), visit);
    break;
  case Command::kFill:
    visit(command.fill().target());
    break;
  case Command::kCopy:
    visit(command.copy().source());
    visit(command.copy().target());
    break;
  case Command::kFeed:
    visit(command.feed().target());
    break;
  case Command::kSend:
    std::ranges::for_each(command.send().sources(), visit);
    break;
  case Command::kReceive:
    std::ranges::for_each(command.receive().targets(), visit);
    break;
  case Command::kCollective:
    for (const plan::proto::CollectivePart &part : command.collective().parts()) {
      visit(part.source());
      visit(part.target());
      if (part.has_scratch())
        visit(part.scratch());
    }
    break;
  case Command::KIND_NOT_SET:
    break;
  }
}

/// Bytes of a buffer, from `begin` to `end`.
struct Range {
  uint64_t begin = 0, end = 0;
};

class Walk {
public:
  Walk(const Plan &plan, const Role &role) : plan_(plan), role_(role), cuts_(size_t(role.buffers_size())) {
    cut();
    for (uint32_t buffer = 0; buffer < uint32_t(role.buffers_size()); ++buffer)
      if (role.buffers(int(buffer)).has_next_of())
        nexts_[role.buffers(int(buffer)).next_of()] = buffer;
    for (const plan::TimedCommand &timed : plan::timeStep(role, [](const plan::TimedCommand &) { return 1.0; }))
      run(*timed.command, stepOf(role).calls(timed.call).microbatch());
    joinSteps();
  }

  StepTensors take() { return std::move(result_); }

private:
  /// A piece of a buffer's copy for a micro-batch, by where it begins.
  struct Piece {
    uint32_t buffer;
    uint64_t slot, begin;
    auto operator<=>(const Piece &) const = default;
  };

  Range rangeOf(const Operand &operand) const {
    const uint64_t begin = plan::operandOffset(plan_, operand, role_.ranks(0));
    return {begin, begin + bytesOf(operand)};
  }

  //===-- pieces ----------------------------------------------------------------===//

  void cut() {
    std::vector<const Command *> moves;
    for (const plan::proto::Routine &routine : role_.routines())
      for (const Command &command : routine.commands()) {
        forEachOperand(command, [&](const Operand &operand) {
          cuts_[operand.buffer()].insert({rangeOf(operand).begin, rangeOf(operand).end});
        });
        if (transferOf(role_, command))
          moves.push_back(&command);
      }
    bool grew = true;
    for (int round = 0; grew && round < role_.arenas_size() * 2; ++round) { // one way is at most that long
      grew = false;
      for (const Command *move : moves) {
        const Operand &source = move->copy().source(), &target = move->copy().target();
        grew |= carryCuts(source, target) | carryCuts(target, source);
      }
    }
  }

  /// Whether there are new ones.
  bool carryCuts(const Operand &from, const Operand &to) {
    const Range here = rangeOf(from), there = rangeOf(to);
    std::set<uint64_t> &cuts = cuts_[to.buffer()];
    const size_t before = cuts.size();
    const std::set<uint64_t> &own = cuts_[from.buffer()];
    for (auto at = own.lower_bound(here.begin); at != own.end() && *at <= here.end; ++at)
      cuts.insert(there.begin + (*at - here.begin));
    return cuts.size() > before;
  }

  template <typename Visit> void forEachPiece(const Operand &operand, uint64_t microbatch, Visit &&visit) const {
    const Range range = rangeOf(operand);
    const uint64_t slot = microbatch % std::max(1U, role_.buffers(int(operand.buffer())).slots());
    const std::set<uint64_t> &cuts = cuts_[operand.buffer()];
    for (auto at = cuts.lower_bound(range.begin); at != cuts.end() && *at < range.end; ++at) {
      const auto next = std::next(at);
      visit(Piece{operand.buffer(), slot, *at}, (next == cuts.end() ? range.end : *next) - *at);
    }
  }

  //===-- tensors ---------------------------------------------------------------===//

  size_t newTensor(uint64_t bytes, UsedTensor::Origin origin) {
    result_.tensors.push_back({.bytes = int64_t(bytes), .origin = origin, .uses = {}});
    return result_.tensors.size() - 1;
  }

  /// What lies there. What nobody has written in this step was there before it.
  size_t tensorAt(const Piece &piece, uint64_t bytes) {
    const auto [place, isFirst] = holds_.try_emplace(piece, 0);
    if (isFirst) {
      place->second = newTensor(bytes, UsedTensor::Kept);
      foundFirst_[piece] = place->second;
    }
    return place->second;
  }

  bool isOnDevice(const Operand &operand) const {
    return role_.arenas(int(role_.buffers(int(operand.buffer())).arena())).space() == "device";
  }

  void run(const Command &command, uint64_t microbatch) {
    if (transferOf(role_, command))
      return carry(command, microbatch);
    const bool computes = role_.queues(int(command.queue())).kind() == Queue::COMPUTE;
    std::map<Piece, uint64_t> touched; // of device memory, with bytes
    const auto use = [&](const Operand &operand, bool begins) {
      const TensorUse::By by = !isOnDevice(operand) ? TensorUse::Host
                               : computes           ? TensorUse::Compute
                                                    : TensorUse::Device;
      forEachPiece(operand, microbatch, [&](const Piece &piece, uint64_t bytes) {
        if (begins)
          holds_[piece] = newTensor(bytes, command.has_feed() ? UsedTensor::Copied : UsedTensor::Made);
        addUse(tensorAt(piece, bytes), {by, by == TensorUse::Compute ? int64_t(result_.used.size()) : 0});
        if (by != TensorUse::Host)
          touched[piece] = bytes;
      });
    };
    forEachOperand(command, [&](const Operand &operand) {
      if (operand.access() == Operand::READ || operand.access() == Operand::READ_WRITE)
        use(operand, false);
    });
    forEachOperand(command, [&](const Operand &operand) {
      if (operand.access() != Operand::READ)
        use(operand, true);
    });
    if (!computes)
      return;
    result_.used.push_back(0);
    for (const auto &[piece, bytes] : touched)
      result_.used.back() += int64_t(bytes);
  }

  void addUse(size_t tensor, TensorUse use) {
    std::vector<TensorUse> &uses = result_.tensors[tensor].uses;
    if (uses.empty() || use.by != TensorUse::Compute || uses.back().by != use.by || uses.back().moment != use.moment)
      uses.push_back(use);
  }

  /// What the source holds lies at the target, too.
  void carry(const Command &command, uint64_t microbatch) {
    std::vector<std::pair<size_t, uint64_t>> moved; // tensor, bytes
    forEachPiece(command.copy().source(), microbatch,
                 [&](const Piece &piece, uint64_t bytes) { moved.push_back({tensorAt(piece, bytes), bytes}); });
    size_t next = 0;
    forEachPiece(command.copy().target(), microbatch, [&](const Piece &piece, uint64_t bytes) {
      const bool isSame = next < moved.size() && moved[next].second == bytes;
      holds_[piece] = isSame ? moved[next].first : newTensor(bytes, UsedTensor::Copied); // says nothing of its bytes
      ++next;
    });
  }

  /// What the next step finds in a piece. A buffer takes over what its next holds.
  size_t foundNext(const Piece &piece) const {
    if (const auto buffer = nexts_.find(piece.buffer); buffer != nexts_.end())
      if (const auto next = holds_.find({buffer->second, piece.slot, piece.begin}); next != holds_.end())
        return next->second;
    return holds_.at(piece);
  }

  /// Where a step ends with another tensor than it began with, the next one begins with that.
  void joinSteps() {
    std::set<size_t> keep; // found by the step
    for (const auto &[piece, tensor] : foundFirst_)
      keep.insert(tensor);
    std::set<size_t> joined;
    for (const auto &[piece, first] : foundFirst_) {
      const size_t last = foundNext(piece);
      UsedTensor &found = result_.tensors[first];
      const bool isKept = role_.buffers(int(piece.buffer)).scope() == Buffer::PLAN;
      if (isKept && last == first)
        continue;
      found.origin = UsedTensor::Copied; // says nothing of the time before
      if (!isKept || keep.contains(last) || !joined.insert(last).second)
        continue;
      std::vector<TensorUse> &uses = result_.tensors[last].uses;
      uses.insert(uses.end(), found.uses.begin(), found.uses.end());
      found.uses.clear();
    }
  }

  const Plan &plan_;
  const Role &role_;
  std::vector<std::set<uint64_t>> cuts_; // by buffer
  std::map<Piece, size_t> holds_;        // tensors
  std::map<Piece, size_t> foundFirst_;   // tensors, where nothing was written before
  std::map<uint32_t, uint32_t> nexts_;   // buffers, by what they are the next of
  StepTensors result_;
};

} // namespace

StepTensors stepTensors(const Plan &plan, const Role &role) { return Walk(plan, role).take(); }

} // namespace ds::report
