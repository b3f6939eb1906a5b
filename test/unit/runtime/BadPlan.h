//===- BadPlan.h - a sound plan, spoilt in one place ----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <functional>
#include <ostream>
#include <string>

namespace ds::test {

inline proto::Role &role(proto::Plan &plan) { return *plan.mutable_roles(0); }
inline proto::Buffer &buffer(proto::Plan &plan, int i) { return *role(plan).mutable_buffers(i); }
inline proto::Command &command(proto::Plan &plan, int i) {
  return *role(plan).mutable_routines(0)->mutable_commands(i);
}
inline proto::Program &program(proto::Plan &plan) { return *role(plan).mutable_programs(0); }
inline proto::Variable &variable(proto::Plan &plan, int i) { return *plan.mutable_variables(i); }

struct BadPlan {
  std::string name;
  std::function<void(proto::Plan &)> spoil;
  std::string error; // a part of it
};

/// A plan with one of everything that one rank has (PlanReaderTest.cpp); one of placements of all kinds
/// (PlanReaderPlacementsTest.cpp).
proto::Plan soundPlan();
proto::Plan placedPlan();

/// Keeps GoogleTest from printing bytes.
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
inline void PrintTo(const BadPlan &bad, std::ostream *out) { *out << bad.name; }

#define BAD(name, error, ...)                                                                                          \
  BadPlan {                                                                                                            \
    #name, [](proto::Plan &p) { __VA_ARGS__; }, error                                                                  \
  }

} // namespace ds::test
