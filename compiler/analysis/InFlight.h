//===- InFlight.h - how many micro-batches of a value a role holds ------------===//
#pragma once

#include "dialects/Dist/Dist.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace ds {

/// What is written ahead of use from outside a rank's compute: the inputs of one feed, or the messages of one channel.
struct Arrival {
  std::string ready, freed; ///< events: the values are there; their slot may be written again
  llvm::SetVector<mlir::StringAttr> values;
  dist::FragmentOp lastReader; ///< signals `freed` for each micro-batch of a step; null: no step reads them
  int64_t slots = 1;
  /// The write for micro-batch m waits for `freed` of micro-batch m - delay, which is the one that had its slot. What
  /// is received once a step has no earlier micro-batch; it waits for the compute called before it, so that its bytes
  /// are free for others until then.
  int64_t delay = 1;
};

/// What a message leaves from: its values may be written again once it is sent.
struct Departure {
  std::string sent;                         ///< event
  llvm::SetVector<mlir::StringAttr> values; ///< kept by the fragment that sends them; state is not among them
  int64_t slots = 1;
};

/// The calls of a role's programs, seen from the values that pass between them.
class InFlight {
public:
  InFlight(dist::RoleOp role, const mlir::SymbolTable &symbols);

  /// Copies of a value: the maximum, over the calls, of the micro-batches between their first use of it and their last
  /// one. What is sent has two, so that the next can be computed meanwhile.
  int64_t slots(mlir::StringAttr value) const { return std::max<int64_t>(1, slots_.lookup(value)); }

  /// By the op that writes or sends: a fragment of feeds (its first feed), a dist.receive, a dist.send.
  const llvm::MapVector<mlir::Operation *, Arrival> &arrivals() const { return arrivals_; }
  const llvm::MapVector<mlir::Operation *, Departure> &departures() const { return departures_; }

  /// The arrival that writes a value, or null.
  const Arrival *arrivalOf(mlir::StringAttr value) const;
  /// Events of earlier messages of the fragment that have a value of this one: the last use of a value is one
  /// command's.
  llvm::SmallVector<std::string> sentBefore(dist::SendOp send) const;

private:
  void noteFragment(dist::FragmentOp fragment);
  void follow(dist::ProgramOp program, const mlir::SymbolTable &symbols);
  void findLastReaders(dist::ProgramOp step, const mlir::SymbolTable &symbols);
  void delayReceivesOnce(dist::ProgramOp step, const mlir::SymbolTable &symbols);

  int64_t stages_;                                                                     // of the module
  llvm::DenseMap<mlir::Operation *, llvm::SetVector<mlir::StringAttr>> used_, loaded_; // by fragment; looked up
  llvm::DenseMap<mlir::StringAttr, int64_t> slots_;                                    // looked up
  llvm::MapVector<mlir::Operation *, Arrival> arrivals_;
  llvm::MapVector<mlir::Operation *, Departure> departures_;
};

} // namespace ds
