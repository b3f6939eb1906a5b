//===- StateShares.h - which rank writes what of the state ----------------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// Variables of a plan that a step leaves for the next: parameters, optimizer state, buffers of the module. Not
/// gradients, which begin at zero, nor metrics, which each step makes anew, nor constants, which the plan has.
std::vector<uint32_t> stateVariables(const plan::proto::Plan &plan);

/// The same for all processes, since it follows from the plan alone.
struct StateShares {
  /// By rank, in the order in which a step writes them (StateGate.h), counted in the rank's pieces.
  std::vector<std::vector<HeldPart>> parts;
  std::vector<Manifest::Variable> variables; ///< where each lies then, in the plan's order
};

/// Each element of each version is written once: what several ranks hold by the one of them that has the least to write
/// so far. Throws ds::Error for state that the ranks do not hold between them.
StateShares shareState(const plan::proto::Plan &plan);

/// Whether a part, counted in its rank's piece, is all of that.
bool isWholePiece(const plan::proto::Plan &plan, const HeldPart &part);

/// What such a part is called in its rank's file (Manifest.h).
std::string tensorName(const plan::proto::Plan &plan, uint32_t rank, const HeldPart &part);

} // namespace ds::runtime
