//===- MinCut.cpp - Dinic's algorithm ---------------------------------------===//
//
// E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/MinCut.h"

#include <algorithm>
#include <cstddef>

namespace ds::scheduling {

void MinCut::addEdge(int32_t from, int32_t to, Capacity capacity) {
  edgesOf_[size_t(from)].push_back(int32_t(edges_.size()));
  edges_.push_back({to, capacity});
  edgesOf_[size_t(to)].push_back(int32_t(edges_.size()));
  edges_.push_back({from, 0});
}

std::vector<char> MinCut::sourceSide(int32_t source, int32_t sink) {
  while (findLevels(source, sink))
    blockFlow(source, sink);
  std::vector<char> side(level_.size());
  std::transform(level_.begin(), level_.end(), side.begin(), [](int32_t level) { return level >= 0; });
  return side;
}

/// Breadth first over edges with room; whether the sink can be reached.
bool MinCut::findLevels(int32_t source, int32_t sink) {
  level_.assign(edgesOf_.size(), -1);
  std::vector<int32_t> queue = {source};
  level_[size_t(source)] = 0;
  for (size_t next = 0; next < queue.size(); ++next)
    for (const int32_t index : edgesOf_[size_t(queue[next])])
      if (const Edge &edge = edges_[size_t(index)]; edge.room > 0 && level_[size_t(edge.to)] < 0) {
        level_[size_t(edge.to)] = level_[size_t(queue[next])] + 1;
        queue.push_back(edge.to);
      }
  return level_[size_t(sink)] >= 0;
}

/// Fills paths that rise a level an edge until there is none.
void MinCut::blockFlow(int32_t source, int32_t sink) {
  std::vector<size_t> tried(edgesOf_.size(), 0); // edges of a node that lead nowhere any more
  std::vector<int32_t> path;                     // edges from the source on
  for (int32_t node = source;;) {
    if (node == sink) {
      Capacity least = edges_[size_t(path.front())].room;
      for (const int32_t index : path)
        least = std::min(least, edges_[size_t(index)].room);
      for (const int32_t index : path) {
        edges_[size_t(index)].room -= least;
        edges_[size_t(index ^ 1)].room += least;
      }
      path.clear();
      node = source;
      continue;
    }
    const std::vector<int32_t> &edges = edgesOf_[size_t(node)];
    size_t &next = tried[size_t(node)];
    const auto rises = [&](const Edge &edge) {
      return edge.room > 0 && level_[size_t(edge.to)] == level_[size_t(node)] + 1;
    };
    while (next < edges.size() && !rises(edges_[size_t(edges[next])]))
      ++next;
    if (next < edges.size()) {
      path.push_back(edges[next]);
      node = edges_[size_t(edges[next])].to;
    } else if (path.empty()) {
      return;
    } else {
      node = edges_[size_t(path.back() ^ 1)].to; // back to where it came from, past this edge
      path.pop_back();
      ++tried[size_t(node)];
    }
  }
}

} // namespace ds::scheduling
