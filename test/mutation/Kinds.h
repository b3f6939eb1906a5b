//===- Kinds.h - defects that a compiler could make ------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "test/mutation/Edit.h"

#include <string>
#include <vector>

namespace ds::mutation {

/// One way to break a plan. docs/mutations.md says for each whose fault it stands for.
struct Kind {
  const char *name;
  /// Wrong wherever it is planted, so always to be refused. Others may hit what does not matter: a wait that another
  /// wait implies, gaps between buffers.
  bool alwaysHarmful;
  /// Plants it and says what was done; "" where the plan has no place for it.
  std::string (*plant)(proto::Plan &plan, Random &random);
};

std::vector<Kind> orderKinds();       // OrderKinds.cpp: queues, events, collectives, calls
std::vector<Kind> memoryKinds();      // MemoryKinds.cpp: bytes, lives, slots
std::vector<Kind> gradientKinds();    // GradientKinds.cpp: reductions, updates, state
std::vector<Kind> meaningKinds();     // MeaningKinds.cpp: what commands compute
std::vector<Kind> messageKinds();     // MessageKinds.cpp: what stages tell each other
std::vector<Kind> endKinds();         // EndKinds.cpp: what a run leaves behind
std::vector<Kind> rankKinds();        // RankKinds.cpp: what ranks have in common
std::vector<Kind> closedWorldKinds(); // ClosedWorldKinds.cpp: commands that say less than they do
std::vector<Kind> sumKinds();         // SumKinds.cpp: sums that have a part twice, metrics misread
std::vector<Kind> statisticsKinds();  // StatisticsKinds.cpp: running statistics, and half an evaluation
std::vector<Kind> overflowKinds();    // OverflowKinds.cpp: float16 steps that overflow

/// All of them, in this order.
std::vector<Kind> allKinds();

} // namespace ds::mutation
