//===- Profile.cpp - how long each command has taken ----------------------===//
#include "runtime/profile/Profile.h"

namespace ds::runtime {

std::vector<CommandTime> Profile::take() {
  taken_.resize(clocks_.size());
  std::vector<CommandTime> times;
  for (size_t i = 0; i < clocks_.size(); ++i) {
    const Taken now{clocks_[i].runs(), clocks_[i].nanoseconds()};
    times.push_back(
        {clocks_[i].command(), now.runs - taken_[i].runs, double(now.nanoseconds - taken_[i].nanoseconds) * 1e-9});
    taken_[i] = now;
  }
  return times;
}

} // namespace ds::runtime
