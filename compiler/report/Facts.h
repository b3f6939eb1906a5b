//===- Facts.h - what both reports count ----------------------------------===//
#pragma once

#include "compiler/report/movement/Transfer.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

/// The sizes of the axes, the slowest first; 1 where the plan names none. All ranks: their product.
struct WorldSize {
  uint64_t pipe = 1, data = 1, expert = 1, tensor = 1;
  uint64_t ranks() const { return pipe * data * expert * tensor; }
};
WorldSize worldSize(const plan::proto::Plan &plan);

/// Variables that each data-parallel rank has of its own micro-batches, running statistics and what else
/// forward changes: rank 0's are exported,
/// which no class of numerics speaks of. None where there is one such rank.
std::vector<std::string> ownOfDataRanks(const plan::proto::Plan &plan);

/// Kernels that the plan carries, the commands of all roles' routines that run them, and the bytes of their text.
struct CompiledKernels {
  uint64_t kernels = 0, commands = 0, bytes = 0;
};
CompiledKernels compiledKernels(const plan::proto::Plan &plan);

/// Commands of all roles' routines for which the plan chooses cuBLASLt's algorithm (`ds-run --tune`).
uint64_t tunedCommands(const plan::proto::Plan &plan);

/// The index of the role that a rank belongs to, or -1.
int roleOf(const plan::proto::Plan &plan, uint64_t rank);

/// Elements of a shape.
uint64_t elements(const google::protobuf::RepeatedField<int64_t> &shape);
uint64_t bytesOf(const plan::proto::Variable &variable);

/// "float32".
std::string_view dtypeName(plan::proto::DType dtype);
/// "[768, 50257]".
std::string shapeText(const google::protobuf::RepeatedField<int64_t> &shape);
/// "weights", as in the json report.
std::string_view categoryName(plan::proto::Buffer::Category category);

/// One sentence on what counts as a category.
std::string_view categoryMeaning(plan::proto::Buffer::Category category);

/// "1.50 GiB"; three significant digits, powers of 1024.
std::string bytesText(uint64_t bytes);
/// "124 M": three significant digits, powers of 1000.
std::string countText(double count);
/// "12,345,678".
std::string grouped(uint64_t number);
/// "12.3 %" of 0.123.
std::string percentText(double share);
/// "12.3 ms": three significant digits.
std::string secondsText(double seconds);
/// "1 key", "2 keys".
std::string plural(uint64_t count, const std::string &thing, const char *ending = "s");
/// "0", "0 to 7, 16 to 23".
std::string rankRanges(const plan::proto::Role &role);

} // namespace ds::report
