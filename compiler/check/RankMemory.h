//===- RankMemory.h - what the arenas of one rank hold in a run -----------===//
#pragma once

#include "compiler/check/ShadowMemory.h"
#include "compiler/check/StateChanges.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Refusal.h"
#include "compiler/check/schedule/RoleSchedule.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

/// Bytes of an arena.
struct Range {
  uint32_t arena;
  uint64_t begin, end;

  bool operator==(const Range &) const = default;
  bool overlaps(const Range &other) const { return arena == other.arena && begin < other.end && other.begin < end; }
};

/// Bytes of an operand that hold one thing, counted from the operand's first byte.
struct OperandSegment {
  uint64_t begin, end;
  std::vector<Contribution> contributions = {};
  uint32_t value = Values::unknown;
  uint64_t valueByte = 0;    ///< where it begins in the value
  plan::AxisSet varies = {}; ///< along these it is not the same on all ranks (Distribution.h)
};

/// Sums of gradients of all slices, of which each rank keeps its own.
struct Scattered {
  std::vector<OperandSegment> whole;
  uint32_t communicator;

  /// The slice of a rank, of so many bytes.
  std::vector<OperandSegment> of(const proto::Plan &plan, uint32_t rank, uint64_t bytes) const;
};

/// What roles have passed to each other so far in a run.
struct Messages {
  /// By send: what lay in each of its operands.
  std::map<Step, std::vector<std::vector<OperandSegment>>> sent;
  /// By role, call, command and part of an all_gather: what lay in the source when the first role went on with it.
  std::map<std::array<uint32_t, 4>, std::vector<OperandSegment>> gathered;
  /// By kernel that copies or adds sums of gradients: the sum. A rank that is followed in a few bytes only, which may
  /// not hold what the sum is made of, takes it from here.
  std::map<Step, std::vector<OperandSegment>> sums;
  /// By kernel that adds to sums of gradients, and its operand: what value it adds there. Read like `sums`.
  std::map<std::pair<Step, const proto::Operand *>, uint32_t> added;
  /// In all slices: what a reduce_scatter has made, by kernel what becomes of it, and by send and operand what is sent
  /// of it. By role and buffer, what lies there.
  std::map<std::pair<uint32_t, uint32_t>, Scattered> scattered;
  std::map<Step, Scattered> made;
  std::map<std::pair<Step, size_t>, Scattered> sentOfAll;
  /// Updates that took 1 for a factor that may be another. Of other ranks than the first of a role not all scalars are
  /// followed; they run the same commands.
  std::set<Step> byOne;
};

class RankMemory;

/// A role in a run of all roles, and what the roles share.
struct RoleContext {
  const proto::Plan &plan;
  Meaning &meaning;
  const StateChanges &changes;
  const JointTimeline &joint;
  Messages &messages;
  const std::vector<std::unique_ptr<RankMemory>> &memories; ///< of the first rank of each role, in every byte
  uint32_t index;                                           ///< of the role
  const proto::Program &program;
  const RoleSchedule &schedule;
  const std::optional<uint32_t> one; ///< the factor of gradients that is 1, so that the program's tail does not run

  const proto::Role &role() const { return plan.roles(int(index)); }
  const Timeline &timeline() const { return joint.timelines[index]; }
  /// Whether a call belongs to the program's tail.
  bool isInTail(uint32_t call) const { return program.has_tail() && call >= program.tail().first_call(); }
};

/// The arenas of one rank: what is known of each byte while the rank's run is followed.
class RankMemory {
public:
  /// `followed`: the only bytes of interest, or nullptr for all. If given, the first ranks of all roles have run
  /// before.
  RankMemory(const RoleContext &context, uint32_t rank, const std::vector<Range> *followed);

  const RoleContext context;
  const uint32_t rank;

  const proto::Plan &plan() const { return context.plan; }
  const proto::Role &role() const { return context.role(); }
  const Timeline &timeline() const { return context.timeline(); }
  const Instance &instance(size_t index) const { return timeline().instances[index]; }
  Values &values() const { return context.meaning.values(); }
  bool followsAll() const { return followed_ == nullptr; }

  const proto::Buffer &bufferOf(const proto::Operand &operand) const { return role().buffers(int(operand.buffer())); }
  /// Where the operand begins within its buffer, for this rank.
  uint64_t offsetIn(const proto::Operand &operand) const;
  /// Whether each micro-batch leaves there what the next one reads. Its contents' generations are how many have.
  bool isCarried(const proto::Buffer &buffer) const {
    return buffer.has_variable() && context.changes.of(buffer.variable()).how == StateChanges::Carried;
  }
  Range rangeOf(const proto::Operand &operand, uint64_t microbatch) const;
  bool isFollowed(const Range &range) const {
    return followsAll() || std::ranges::any_of(*followed_, [&](const Range &one) { return one.overlaps(range); });
  }
  ShadowMemory &shadow(uint32_t arena) { return shadows_[arena]; }

  /// Which value of a buffer an instance means: that of its micro-batch, that of its call, or the only one.
  static uint64_t generationOf(const proto::Buffer &buffer, const Instance &instance);

  /// What lies in `bytes` bytes of an operand behind its first `skip`; nothing where that is not followed.
  std::vector<OperandSegment> segmentsOf(const proto::Operand &operand, uint64_t skip, uint64_t bytes,
                                         uint64_t microbatch);
  std::vector<OperandSegment> segmentsOf(const proto::Operand &operand, uint64_t microbatch);
  /// The value that an operand holds from its first byte on.
  uint32_t valueIn(const proto::Operand &operand, uint64_t microbatch);

  // For sentences.
  [[noreturn]] void refuse(const char *rule, size_t index, const std::string &sentence, const std::string &note = {},
                           std::optional<size_t> other = std::nullopt) const;
  std::string placeOf(size_t index) const { return check::placeOf(plan(), context.program.name(), instance(index)); }
  std::string nameOf(uint32_t buffer) const {
    return "buffer " + std::to_string(buffer) + " (" + role().buffers(int(buffer)).name() + ")";
  }
  const std::string &queueName(uint32_t queue) const { return role().queues(int(queue)).name(); }

private:
  void setInitial(uint32_t buffer);

  const std::vector<Range> *const followed_;
  std::vector<ShadowMemory> shadows_; // by arena
};

/// Whether gradients may be rounded on their way from rank to rank: a plan says so, and `verify --config` whether that
/// was asked for. A sum that is rounded stays the sum.
inline bool roundsSums(const proto::Plan &plan) { return plan.numerics() == "lossy"; }

/// Whether a buffer holds sums of gradients, whose contributions are followed.
inline bool holdsSums(const proto::Buffer &buffer) {
  return buffer.category() == proto::Buffer::GRADIENTS || buffer.category() == proto::Buffer::COMMUNICATION;
}

} // namespace ds::check
