//===- Lengths.h - plans for several sizes of one dimension ----------------===//
//
// `ds-opt compile --dim seq=128,512` writes one plan: the one for 512, and in Plan.shorter what differs for 128. State
// and arenas are shared by the form of the file: a Length has none of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::plan {

/// Ascending; empty: the plan is for one size, or has no such dimension.
std::vector<uint64_t> sizesOf(const proto::Plan &plan);

/// The plan of `size`, which sizesOf has, as if it had been compiled for it alone: it names no other.
proto::Plan planOfSize(const proto::Plan &plan, uint64_t size);

/// Buffers of a role that all sizes share: those of scope PLAN, which stand first.
int sharedBuffers(const proto::Role &role);

/// "step" for the largest size of the plan or the only one, "step@128" for another.
std::string programOfSize(const std::string &program, const proto::Plan &plan, uint64_t size);

/// Whether a program of withProgramsOfAllSizes is `program` for some size.
bool isProgram(std::string_view name, std::string_view program);

/// For execution: a plan whose roles have the programs of every size, called as programOfSize says, with inputs and
/// reference programs one after another. Sizes stay as they are in Plan.dimension and Plan.shorter, of which only
/// `size` is kept. `plan` must have passed validatePlan.
proto::Plan withProgramsOfAllSizes(const proto::Plan &plan);

/// What is added to each number of a kind. Lists say the new number of each old one; empty: the same.
struct Renumbering {
  std::vector<uint32_t> buffers, variables, codes, queues, arenas;
  uint32_t events = 0, routines = 0, programs = 0, inputs = 0, ops = 0;
};
void renumber(proto::Role &role, const Renumbering &numbers);

/// The first rule that Plan.dimension and Plan.shorter break; throws ds::Error. The plan of each size is checked by
/// validatePlan.
void checkLengths(const proto::Plan &plan);

} // namespace ds::plan
