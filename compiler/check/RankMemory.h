//===- RankMemory.h - what the arenas of a role's ranks hold in a run -----===//
#pragma once

#include "compiler/check/ShadowMemory.h"
#include "compiler/check/StateChanges.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Layout.h"
#include "compiler/check/schedule/Refusal.h"
#include "compiler/check/schedule/RoleSchedule.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::check {

/// Bytes of an arena: of slices those of the role's first rank, the others' lie behind them.
struct Range {
  uint32_t arena;
  uint64_t begin, end;
  Slices slices = {};
  uint64_t ranks = 1;

  bool operator==(const Range &) const = default;
  /// Whether there is a rank on which both have a byte.
  bool overlaps(const Range &other) const;
};

/// Bytes of an arena in which an operand lies on some rank, and where these are among all that ranks have side by side.
struct Stretch {
  uint64_t begin, end;
  uint64_t first;
};

/// Which coordinates a role's ranks have among those that differ along some axes: first, first + step, ...
struct Coordinates {
  uint64_t first = 0, step = 1, count = 1;
  plan::AxisSet along = {}; ///< those of the axes along which ranks of the role differ
  bool operator==(const Coordinates &) const = default;
};

/// What roles have passed to each other so far in a run.
struct Messages {
  /// By send: what lay in each of its operands.
  std::map<Step, std::vector<Contents>> sent;
  /// By role, call, command and part of a collective: what lay in the source when the first role went on with it.
  std::map<std::array<uint32_t, 4>, Contents> brought;
};

class RankMemory;

/// A role in a run of all roles, and what the roles share.
struct RoleContext {
  const proto::Plan &plan;
  Meaning &meaning;
  const StateChanges &changes;
  const JointTimeline &joint;
  Messages &messages;
  const std::vector<std::unique_ptr<RankMemory>> &memories; ///< by role
  uint32_t index;                                           ///< of the role
  const proto::Program &program;
  const RoleSchedule &schedule;
  const std::optional<uint32_t> one; ///< the factor of gradients that is 1, so that the program's tail does not run

  const proto::Role &role() const { return plan.roles(int(index)); }
  const Timeline &timeline() const { return joint.timelines[index]; }
  /// Whether a call belongs to the program's tail.
  bool isInTail(uint32_t call) const { return program.has_tail() && call >= program.tail().first_call(); }
};

/// The arenas of a role's ranks: what is known of each byte while their run is followed.
class RankMemory {
public:
  explicit RankMemory(const RoleContext &context);

  const RoleContext context;
  const uint32_t rank; ///< the role's first, which sentences name
  bool byOne = false;  ///< the update that runs takes 1 for a factor that may be another

  const proto::Plan &plan() const { return context.plan; }
  const proto::Role &role() const { return context.role(); }
  const Timeline &timeline() const { return context.timeline(); }
  const Instance &instance(size_t index) const { return timeline().instances[index]; }
  Values &values() const { return context.meaning.values(); }

  const proto::Buffer &bufferOf(const proto::Operand &operand) const { return role().buffers(int(operand.buffer())); }
  /// Whether each micro-batch leaves there what the next one reads. Its contents' generations are how many have.
  bool isCarried(const proto::Buffer &buffer) const {
    return buffer.has_variable() && context.changes.of(buffer.variable()).how == StateChanges::Carried;
  }
  Range rangeOf(const proto::Operand &operand, uint64_t microbatch) const;
  std::vector<Stretch> stretchesOf(const Range &range) const;
  ShadowMemory &shadow(uint32_t arena) { return shadows_[arena]; }

  /// Which value of a buffer an instance means, if that has several: that of its call, or of its micro-batch.
  static uint64_t generationOf(const proto::Buffer &buffer, const Instance &instance) {
    return buffer.scope() == proto::Buffer::CALL ? instance.call : instance.microbatch;
  }
  /// Whether each micro-batch has its own of this. A sum of gradients says itself of which micro-batches it is.
  bool isOfMicrobatch(const Known &known) const;
  /// The micro-batch that bytes written for micro-batch `written` are of. What lies among sums of gradients says it
  /// itself. Nothing: they are the sum of several, or over ranks.
  static std::optional<uint64_t> microbatchOf(const Known &known, uint64_t written) {
    if (known.contributions.empty())
      return written;
    const Contribution &one = known.contributions.front();
    return known.contributions.size() == 1 && one.summed.empty() ? std::optional(one.microbatch) : std::nullopt;
  }
  /// Whether a buffer that holds it has one for each micro-batch or call.
  bool isBound(const proto::Buffer &buffer, const Known &known) const {
    return buffer.scope() == proto::Buffer::SLOT || buffer.scope() == proto::Buffer::CALL || isOfMicrobatch(known);
  }

  Contents contentsOf(const proto::Operand &operand, uint64_t microbatch);
  /// The same, of shares what each rank has of them, which may be put elsewhere as it is.
  Contents ownContentsOf(const proto::Operand &operand, uint64_t microbatch);
  /// What `bytes` bytes hold: shares side by side, if there are any; if `along` is given, along these axes.
  Contents joined(std::vector<OperandSegment> segments, uint64_t bytes, plan::AxisSet along = {}) const;
  /// The value that an operand which has these contents holds from its first byte on, on every rank.
  uint32_t valueIn(const proto::Operand &operand, const Contents &contents) const;
  uint32_t valueIn(const proto::Operand &operand, uint64_t microbatch) {
    return valueIn(operand, contentsOf(operand, microbatch));
  }
  /// From now on the bytes of a range hold `contents`; `written` says by whom, for what.
  void put(const Range &range, const Segment &written, const Contents &contents);

  /// Whether all elements are one number.
  bool isNumber(const Known &known) const {
    return known.value > Values::other && !values().type(known.value).elements;
  }
  /// Whether ranks along one of these axes have other parts of a value, or other terms of it.
  bool isShared(const Known &known, plan::AxisSet axes) const {
    const Values::Placed *placed = values().placedIn(known.value);
    while (placed && !axes.contains(placed->spread.axis))
      placed = values().placedIn(placed->whole);
    return placed;
  }
  /// Refuses ("coverage") a role of which some ranks have other coordinates than others.
  const Coordinates &coordinates(plan::AxisSet axes) const;
  /// Whether the role has all ranks that differ along these axes.
  bool isEveryRank(plan::AxisSet axes) const;
  /// Of what all ranks along some axes have side by side, `bytes` each: what the role's have.
  Contents shared(const std::vector<OperandSegment> &whole, uint64_t bytes, plan::AxisSet axes) const;
  /// What a PLAN buffer holds of variables, in bytes of what the role's ranks have of it side by side.
  std::vector<Member> membersOf(const proto::Buffer &buffer) const;
  /// The axes along which ranks have shares of what a buffer holds of a bucket.
  plan::AxisSet sharedAlong(const proto::Buffer &buffer) const;

  // For sentences.
  [[noreturn]] void refuse(const char *rule, size_t index, const std::string &sentence, const std::string &note = {},
                           std::optional<size_t> other = std::nullopt) const;
  std::string placeOf(const Instance &one) const { return check::placeOf(plan(), context.program.name(), one); }
  std::string placeOf(size_t index) const { return placeOf(instance(index)); }
  std::string nameOf(uint32_t buffer) const {
    return "buffer " + std::to_string(buffer) + " (" + role().buffers(int(buffer)).name() + ")";
  }
  const std::string &queueName(uint32_t queue) const { return role().queues(int(queue)).name(); }

private:
  Contents besideEachOther(const std::vector<OperandSegment> &segments, uint64_t bytes, plan::AxisSet along) const;
  void setInitial(uint32_t buffer);

  std::vector<ShadowMemory> shadows_;                        // by arena
  mutable std::map<plan::AxisSet, Coordinates> coordinates_; // as they are asked for
};

/// Whether gradients may be rounded on their way from rank to rank: a plan says so, and `verify --config` whether that
/// was asked for. A sum that is rounded stays the sum.
inline bool roundsSums(const proto::Plan &plan) { return plan.numerics() == "lossy"; }

/// Whether a buffer holds sums of gradients, whose contributions are followed.
inline bool holdsSums(const proto::Buffer &buffer) {
  return buffer.category() == proto::Buffer::GRADIENTS || buffer.category() == proto::Buffer::COMMUNICATION;
}

} // namespace ds::check
