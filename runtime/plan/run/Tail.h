//===- Tail.h - the calls of a program that most runs leave out -----------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <ranges>

namespace ds::plan {

/// What every run makes: all calls of a program but those of its tail, which are the last.
inline auto callsBeforeTail(const proto::Program &program) {
  const auto &calls = program.calls();
  return std::ranges::subrange(calls.begin(),
                               program.has_tail() ? calls.begin() + int(program.tail().first_call()) : calls.end());
}

} // namespace ds::plan
