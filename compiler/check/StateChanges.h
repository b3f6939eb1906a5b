//===- StateChanges.h - what a run changes of what outlives it ------------===//
#pragma once

#include "compiler/check/meaning/Delays.h"
#include "compiler/check/meaning/Values.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ds::check {

/// What the reference program makes of each variable in one run of a program. ds-run calls programs by their names:
/// `step` is the reference's microbatch and update, `evaluate` its evaluate, and any other changes nothing.
class StateChanges {
public:
  StateChanges(const proto::Plan &plan, Values &values, const std::string &program);

  enum How {
    Kept,
    Updated,     ///< by an optimizer, or by a counter of updates
    Averaged,    ///< a running statistic, of each rank's own micro-batches
    Carried,     ///< a buffer, by each of a rank's own micro-batches for its next one
    Accumulated, ///< a sum over micro-batches
    Stored,
    Pending ///< this step's gradient, for the next step's update
  };
  struct Change {
    How how = Kept;
    uint32_t value = Values::unknown; ///< what lies there at the end
  };
  Change of(uint32_t variable) const;
  /// What a variable holds when a run begins: a sum that the run makes is that of the run before.
  uint32_t initial(uint32_t variable) const;
  /// How many a run of the program has. Calls of the first role are of as many as those of any other.
  uint64_t microbatches() const { return microbatches_; }
  /// What the variable of an op that counts micro-batches holds before or behind it in a micro-batch of the run.
  uint32_t before(const proto::ReferenceOp &op, uint64_t microbatch) const;
  uint32_t behind(const proto::ReferenceOp &op, uint64_t microbatch) const;
  /// The variable, of what is a running statistic within this micro-batch: before a turn, between two, or behind it.
  /// Else the value itself.
  uint32_t asRead(uint32_t value, uint64_t microbatch) const;
  /// The axes along which each rank has its own, because micro-batches change it.
  plan::AxisSet varying(uint32_t variable) const {
    return own_.contains(variable) ? plan::batchAxes(plan_) : plan::AxisSet();
  }
  /// Whether each micro-batch of a run has its own of a value.
  bool isOfMicrobatch(uint32_t value) const {
    const Follows follows = values_.type(value).follows;
    return follows == Follows::Samples || (follows == Follows::State && isStep_);
  }
  /// Whether the reference program, if the plan has one, changes anything that it names.
  bool isKnown() const { return known_; }

private:
  /// Of the ops of a micro-batch that take it into one variable: a module that is called twice has two.
  struct Turn {
    uint64_t number = 0, of = 1;
  };

  void add(const proto::ReferenceOp &op);
  uint32_t withFirst(const proto::ReferenceOp &op, uint64_t count, uint64_t each) const;

  const proto::Plan &plan_;
  Values &values_;
  const Delays delays_;
  const bool known_, isStep_;
  const uint64_t microbatches_;
  std::set<uint32_t> own_;             ///< variables, by any program
  std::map<uint32_t, Change> changes_; ///< by variable
  /// Of a value of withFirst.
  struct Taken {
    uint32_t variable;
    uint64_t count, each;
  };
  mutable std::map<uint32_t, Taken> averages_;       ///< by value, as they are met
  std::map<const proto::ReferenceOp *, Turn> turns_; ///< of those that count micro-batches
};

/// Whether an op takes each micro-batch into its variable: a sum that is no gradient, or a running statistic.
bool countsMicrobatches(const proto::Plan &plan, const proto::ReferenceOp &op);

/// Whether a command is said to do that.
bool takesMicrobatch(const proto::Plan &plan, const proto::Command &command);

/// Variables that micro-batches change, so that each rank has its own: running statistics, and what a micro-batch
/// leaves for the next one.
std::set<uint32_t> changedByMicrobatches(const proto::Plan &plan);

/// The functions of the reference program that a run of `program` carries out, in order.
std::vector<std::string> functionsOf(const std::string &program);

} // namespace ds::check
