//===- InFlight.h - how many micro-batches of a value a role holds ------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace ds {

/// What comes from outside a rank's compute and is written ahead of use: the feeds of one routine, or one message.
struct Arrival {
  std::string ready, freed; ///< events: it is there; its slot may be written again
  llvm::SmallSetVector<mlir::Operation *, 2> buffers;
  plan::RoutineOp lastReader; ///< of a micro-batch of a step; null: no step reads it
  int64_t slots = 1;
  /// Which of its calls `freed` speaks of: of micro-batch m, that for m - delay.
  int64_t delay = 1;
};

/// What a message leaves from: its buffers may be written again once it is sent.
struct Departure {
  std::string sent; ///< event
  llvm::SmallSetVector<mlir::Operation *, 2>
      buffers; ///< values that the sending routine writes; not state, which has one copy
  int64_t slots = 1;
};

/// The calls of a role's programs, seen from the buffers that pass values between them: those of scope slot.
class InFlight {
public:
  explicit InFlight(plan::RoleOp role);

  /// Copies of a value: the most micro-batches whose first use and last one lie around one instant, in the order of
  /// calls. What is sent has two, so that the next can be computed meanwhile.
  int64_t slots(mlir::Operation *buffer) const { return std::max<int64_t>(1, slots_.lookup(buffer)); }
  /// Of the longest program.
  int64_t microbatches() const { return microbatches_; }

  /// By the command that writes or sends: the first feed of a routine, a receive, a send.
  const llvm::MapVector<mlir::Operation *, Arrival> &arrivals() const { return arrivals_; }
  const llvm::MapVector<mlir::Operation *, Departure> &departures() const { return departures_; }
  /// Of any feed, or of a receive.
  const Arrival &arrivalOf(mlir::Operation *command) const;

  /// Whether a routine uses one of `buffers` otherwise than to feed or receive it.
  template <typename Buffers> bool uses(plan::RoutineOp routine, const Buffers &buffers) const {
    const auto &used = used_.find(routine)->second;
    return llvm::any_of(buffers, [&](mlir::Operation *buffer) { return used.contains(buffer); });
  }

private:
  using Buffers = llvm::SetVector<mlir::Operation *>;

  void noteRoutine(plan::RoutineOp routine);
  void noteSend(plan::SendOp send, const Buffers &written);
  void countSlots(plan::ProgramOp program);
  void noteLastReaders(plan::ProgramOp step);
  void delayReceives(plan::ProgramOp step);
  plan::RoutineOp routineOf(plan::CallOp call) const;

  llvm::DenseMap<mlir::Attribute, plan::RoutineOp> routines_; // by name; looked up
  llvm::DenseMap<mlir::Operation *, Buffers> touched_, used_; // by routine, of scope slot; looked up
  llvm::DenseMap<mlir::Operation *, int64_t> slots_;          // looked up
  llvm::MapVector<mlir::Operation *, Arrival> arrivals_;
  llvm::MapVector<mlir::Operation *, Departure> departures_;
  int64_t microbatches_ = 1;
};

} // namespace ds
