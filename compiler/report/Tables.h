//===- Tables.h - what the text and the html report show alike ------------===//
#pragma once

#include "compiler/report/Fragmentation.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/Table.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {

/// What a plan is for, in a few lines: (label, sentence).
std::vector<std::pair<std::string, std::string>> headLines(const plan::proto::Plan &plan);

/// Bytes of a space: arena, categories at the peak, why the arena is larger, phases.
Table memoryTable(const plan::proto::Role &role, const SpaceMemory &memory, const Fragmentation &fragmentation);

/// The `most` largest buffers alive at the peak.
Table largestTable(const plan::proto::Role &role, const SpaceMemory &memory, size_t most);

/// Each kind of training state: of all ranks once, and what one holds of it.
Table stateTable(const plan::proto::Plan &plan, const plan::proto::Role &role);

Table bucketTable(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// Tensors, elements and bytes of what is trained, what is not, and buffers of the module.
Table parameterTable(const plan::proto::Plan &plan);

/// Every parameter: type, shape, bytes, and the roles that hold it where there are several.
Table parameterList(const plan::proto::Plan &plan);

/// Bytes that a rank hands to the network in a step, by kind.
Table wireTable(const WireBytes &wire);

/// The role whose commands take longest, one after another.
const plan::proto::Role &slowestRole(const plan::proto::Plan &plan);
/// A line a kernel of a step and one of their sums; seconds where the machine has rates.
Table commandTable(const plan::proto::Plan &plan, const plan::proto::Role &role);

Table configTable(const plan::proto::Plan &plan);

/// "command 4 (h.0.mlp.c_fc) of backward, micro-batch 3".
std::string instantText(const plan::proto::Plan &plan, const plan::proto::Role &role,
                        const plan::proto::Program &program, int call, int command);

} // namespace ds::report
