//===- SlotLayout.h - an offset for every slot of every buffer --------------===//
#pragma once

#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Routines.h"
#include "compiler/passes/plan/KnownSolutions.h"
#include "compiler/scheduling/RepeatedOffsets.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/MapVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ds {

/// Where the buffers of an arena lie.
struct ArenaLayout {
  int64_t bytes = 0, peak = 0;                                         ///< of the arena; the most alive at once
  llvm::MapVector<plan::BufferOp, llvm::SmallVector<int64_t>> offsets; ///< one a slot
};

/// Lays out an arena on the axis of all calls of all programs, where it is known when each copy of a value is alive.
/// With as many slots for all values as micro-batches are in flight, and with more, every slot has a place of its own,
/// so that one may take bytes that another value of its micro-batch leaves, or of a micro-batch in another stage.
class SlotLayout {
public:
  SlotLayout(plan::RoleOp role, const BufferUses &uses, plan::ArenaOp arena, int64_t alignment);

  /// A layout of fewer bytes than `bytes`, if that is well above what is alive at once and one is found. Of at most
  /// `enough` bytes, the first will do.
  std::optional<ArenaLayout> find(int64_t bytes, int64_t enough, KnownSolutions &known) const;

  /// The most bytes alive at once, of `counted` buffers, however many slots there are.
  int64_t peakBytes(llvm::function_ref<bool(plan::BufferOp)> counted = [](plan::BufferOp) { return true; }) const;

private:
  struct Life {
    int64_t microbatch = 0, begin = 0, end = 0; // [begin, end)
  };
  struct Copies {
    plan::BufferOp buffer;
    std::vector<Life> lives;  // by program and micro-batch, or call
    int64_t inFlight = 1;     // slots that it needs
    int64_t microbatches = 1; // that have it
    size_t stage = 0;         // one of the stage's buffers of micro-batches
  };
  /// How many slots values have, and scratch of at least so many bytes; whether values of a stage stay together.
  struct Choice {
    int64_t slots, scratchBytes;
    bool blocks = false;
  };

  void addProgram(plan::ProgramOp program, const Routines &routines);
  void joinStage(const BufferUses::Spans &uses);
  size_t stageOf(size_t copies) const;
  static void addLives(Copies &copies, llvm::ArrayRef<Life> lives);
  bool livesThroughout(plan::BufferOp buffer) const;
  int64_t slotsOf(const Copies &copies, const Choice &choice) const;
  scheduling::RepeatedProblem problemFor(const Choice &choice) const;
  std::vector<Choice> choices(int64_t bytes) const;

  const BufferUses &uses_;
  int64_t alignment_;
  std::vector<Copies> copies_; // of the arena's buffers
  llvm::DenseMap<mlir::Operation *, size_t> indexOf_;
  int64_t end_ = 0; // of the axis
};

} // namespace ds
