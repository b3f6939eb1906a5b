//===- MinCut.h - the cheapest way to part a graph --------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::scheduling {

/// Nodes that are to stand on one of two sides, and what it costs if an edge leads from the first to the second.
/// Dinic's algorithm: phases of shortest augmenting paths, O(V^2 E), no recursion.
class MinCut {
public:
  using Capacity = __int128;

  explicit MinCut(int32_t nodes) : edgesOf_(size_t(nodes)) {}

  /// Costs `capacity`, which is not negative, if `from` stands on the source's side and `to` does not.
  void addEdge(int32_t from, int32_t to, Capacity capacity);

  /// By node, whether it stands on the source's side of a cheapest cut: the one with fewest such nodes.
  std::vector<char> sourceSide(int32_t source, int32_t sink);

private:
  struct Edge {
    int32_t to;
    Capacity room; // that is left; the edge's reverse has index ^ 1
  };

  bool findLevels(int32_t source, int32_t sink);
  void blockFlow(int32_t source, int32_t sink);

  std::vector<Edge> edges_;
  std::vector<std::vector<int32_t>> edgesOf_; // indices, by node
  std::vector<int32_t> level_;                // distance from the source; -1: out of reach
};

} // namespace ds::scheduling
