//===- BufferUses.h - when a routine uses which buffers ---------------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <cstdint>

namespace ds {

class Routines;

/// Whether two commands touch the same bytes, one of them writing.
bool conflict(plan::CommandOpInterface a, plan::CommandOpInterface b);

/// Commands of a routine, both included, in the order of the compute queue.
struct CommandSpan {
  int64_t first, last;
};

/// What the routines of a role use. Time is the order of the compute queue: a collective, a copy, a fill or a kernel on
/// a queue of its own runs at some time after the command that signals what it waits for and before the one that waits
/// for its signal, and uses its buffers that long; both stand in its routine. So does a message, where these are known:
/// a send whose end its routine waits for, and a receive that waits for compute of its own micro-batch, which is called
/// before it. What a routine of the step issues and does not wait for uses its buffers up to the wait of the first
/// routine called behind it that does. What a message leaves from that no routine waits for, and that waits for a copy
/// from the same buffer, is in use up to the message.
class BufferUses {
public:
  explicit BufferUses(plan::RoleOp role);

  using Spans = llvm::MapVector<mlir::Operation *, CommandSpan>; // by buffer
  const Spans &of(plan::RoutineOp routine) const { return byRoutine_.find(routine)->second; }

  /// Whether messages leave from a buffer or arrive in it at times that no routine knows.
  bool isMessage(mlir::Operation *buffer) const { return messages_.contains(buffer); }
  /// Whether inputs are copied into it, ahead of the compute that reads them.
  bool isFed(mlir::Operation *buffer) const { return fed_.contains(buffer); }

private:
  void addRoutine(plan::RoutineOp routine);
  void addWaits(plan::ProgramOp step, const Routines &byName);
  void add(plan::RoutineOp routine, mlir::Operation *buffer, const CommandSpan &span);

  llvm::DenseMap<mlir::Operation *, Spans> byRoutine_; // looked up
  llvm::DenseSet<mlir::Operation *> messages_, fed_;   // looked up
};

} // namespace ds
