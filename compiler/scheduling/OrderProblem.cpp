//===- OrderProblem.cpp - what makes an order of commands right -----------===//
#include "compiler/scheduling/OrderProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

} // namespace

std::optional<std::string> OrderProblem::check() const {
  if (commands < 0)
    return text(commands) + " commands";
  for (const auto &[first, second] : edges)
    if (first < 0 || first >= second || second >= commands)
      return "edge " + text(first) + " to " + text(second) + " does not lead forwards among " + text(commands) +
             " commands";
  int64_t room = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    const std::string name = "buffer " + text(int64_t(i));
    if (buffer.bytes < 0)
      return name + " has a negative size";
    if (buffer.users.empty())
      return name + " is used by no command";
    if (buffer.users.front() < 0 || buffer.users.back() >= commands ||
        std::adjacent_find(buffer.users.begin(), buffer.users.end(), std::greater_equal<>()) != buffer.users.end())
      return name + " has users that do not ascend among " + text(commands) + " commands";
    if (buffer.bytes > room)
      return "the buffers up to " + text(int64_t(i)) + " together are larger than any address space";
    room -= buffer.bytes;
  }
  return std::nullopt;
}

std::optional<std::string> OrderProblem::verify(std::span<const int64_t> order) const {
  if (int64_t(order.size()) != commands)
    return text(int64_t(order.size())) + " places for " + text(commands) + " commands";
  std::vector<int64_t> position(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= commands || position[size_t(order[i])] >= 0)
      return "place " + text(int64_t(i)) + " has command " + text(order[i]) + ", which is none or has a place already";
    position[size_t(order[i])] = int64_t(i);
  }
  for (const auto &[first, second] : edges)
    if (position[size_t(first)] > position[size_t(second)])
      return "command " + text(first) + " comes after " + text(second) + ", which needs it";
  return std::nullopt;
}

int64_t OrderProblem::peakBytes(std::span<const int64_t> order) const {
  std::vector<int64_t> position(order.size()), change(order.size() + 1, 0);
  for (size_t i = 0; i < order.size(); ++i)
    position[size_t(order[i])] = int64_t(i);
  for (const Buffer &buffer : buffers) {
    const auto less = [&](int64_t a, int64_t b) { return position[size_t(a)] < position[size_t(b)]; };
    const auto [first, last] = std::minmax_element(buffer.users.begin(), buffer.users.end(), less);
    change[buffer.before ? 0 : size_t(position[size_t(*first)])] += buffer.bytes;
    change[buffer.after ? order.size() : size_t(position[size_t(*last)]) + 1] -= buffer.bytes;
  }
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < order.size(); ++i)
    most = std::max(most, live += change[i]);
  return most;
}

} // namespace ds::scheduling
