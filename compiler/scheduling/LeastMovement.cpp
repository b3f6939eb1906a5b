//===- LeastMovement.cpp - the cheapest absences, as a flow on a path --------===//
//
// Let D be the most bytes that are missing at any moment. D bytes of flow go from the first moment to the end of the
// last. Past a moment at which d bytes are missing at most D - d flow for nothing; so at least d go by way of absences,
// which cost. Flow may go back for nothing: an absence may cover more than is missing.
//
// 1. Only moments at which something is missing matter; of those between two ends of absences, the one with the most.
// 2. As long as flow is lacking: find the distance of every node by cost (Dijkstra, with what the distances before
//    leave of each cost), and send what can flow along shortest ways (Dinic).
// 3. The distances are the prices: a moment's is how much farther its end is than its start.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/MovementProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

class CheapestFlow {
public:
  explicit CheapestFlow(size_t nodes) : edgesOf_(nodes), distance_(nodes) {}

  /// Returns the edge's number.
  size_t addEdge(size_t from, size_t to, int64_t room, int64_t cost) {
    edgesOf_[from].push_back(edges_.size());
    edges_.push_back({to, room, cost});
    edgesOf_[to].push_back(edges_.size());
    edges_.push_back({from, 0, -cost});
    return edges_.size() - 2;
  }

  /// From the first node to the last; whether all of it can flow.
  bool send(int64_t amount) {
    while (amount > 0) {
      if (!findDistances())
        return false;
      while (amount > 0 && findLevels()) {
        next_.assign(edgesOf_.size(), 0);
        while (const int64_t sent = push(amount))
          amount -= sent;
      }
    }
    return true;
  }

  int64_t flow(size_t edge) const { return edges_[edge ^ 1].room; }
  int64_t distance(size_t node) const { return distance_[node]; }

private:
  struct Edge {
    size_t to;
    int64_t room, cost; // the edge's reverse has number ^ 1
  };

  int64_t reduced(size_t from, const Edge &edge) const { return edge.cost + distance_[from] - distance_[edge.to]; }

  /// By Dijkstra, on top of the distances before, by which no cost is negative. Whether the last node can be reached;
  /// what cannot is as far as that.
  bool findDistances() {
    std::vector<int64_t> more(edgesOf_.size(), unlimited);
    std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>, std::greater<>> near;
    more[0] = 0;
    near.push({0, 0});
    while (!near.empty()) {
      const auto [far, node] = near.top();
      near.pop();
      if (far > more[node])
        continue;
      for (size_t number : edgesOf_[node]) {
        const Edge &edge = edges_[number];
        if (const int64_t there = far + reduced(node, edge); edge.room > 0 && there < more[edge.to]) {
          more[edge.to] = there;
          near.push({there, edge.to});
        }
      }
    }
    for (size_t node = 0; node < more.size(); ++node)
      distance_[node] += std::min(more[node], more.back());
    return more.back() < unlimited;
  }

  /// How many edges of shortest ways lead to each node; whether some lead to the last.
  bool findLevels() {
    level_.assign(edgesOf_.size(), -1);
    level_[0] = 0;
    std::vector<size_t> reached{0};
    for (size_t i = 0; i < reached.size(); ++i)
      for (size_t number : edgesOf_[reached[i]])
        if (const Edge &edge = edges_[number]; edge.room > 0 && level_[edge.to] < 0 && reduced(reached[i], edge) == 0) {
          level_[edge.to] = level_[reached[i]] + 1;
          reached.push_back(edge.to);
        }
    return level_.back() >= 0;
  }

  /// Sends at most `limit` along one shortest way, and returns how much; 0: there is none any more. No recursion, since
  /// ways are as long as a step.
  int64_t push(int64_t limit) {
    std::vector<size_t> way; // edges
    for (size_t node = 0; node + 1 != edgesOf_.size();) {
      const auto &edges = edgesOf_[node];
      while (next_[node] < edges.size() && !leadsOn(node, edges_[edges[next_[node]]]))
        ++next_[node];
      if (next_[node] < edges.size()) {
        way.push_back(edges[next_[node]]);
        node = edges_[way.back()].to;
      } else if (way.empty()) {
        return 0;
      } else { // a dead end
        node = edges_[way.back() ^ 1].to;
        way.pop_back();
        ++next_[node];
      }
    }
    for (size_t edge : way)
      limit = std::min(limit, edges_[edge].room);
    for (size_t edge : way) {
      edges_[edge].room -= limit;
      edges_[edge ^ 1].room += limit;
    }
    return limit;
  }

  bool leadsOn(size_t node, const Edge &edge) const {
    return edge.room > 0 && level_[edge.to] == level_[node] + 1 && reduced(node, edge) == 0;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edgesOf_; // numbers, by node
  std::vector<int64_t> distance_;            // from the first node, by cost
  std::vector<int64_t> level_;
  std::vector<size_t> next_; // of edgesOf_, by node, the first that may lead on
};

/// Moments at which something is missing, those together between which no absence begins or ends.
struct Stretches {
  explicit Stretches(const MovementProblem &problem) : until(problem.live.size() + 1) {
    std::vector<char> bounds(problem.live.size() + 1);
    for (const MovementProblem::Absence &one : problem.absences)
      bounds[size_t(one.begin)] = bounds[size_t(one.end)] = 1;
    bool open = false;
    for (size_t moment = 0; moment < problem.live.size(); ++moment) {
      open &= bounds[moment] == 0;
      until[moment] = missing.size();
      const int64_t lacks = problem.live[moment] - problem.capacity;
      if (lacks <= 0)
        continue;
      if (!open) {
        missing.push_back(0);
        worst.push_back(moment);
      }
      open = true;
      if (lacks > missing.back()) {
        missing.back() = lacks;
        worst.back() = moment;
      }
    }
    until.back() = missing.size();
  }
  std::vector<int64_t> missing; // bytes, by stretch
  std::vector<size_t> worst;    // moment, by stretch
  std::vector<size_t> until;    // stretches before a moment at which an absence begins or ends
};

} // namespace

std::optional<LeastMovement> leastMovement(const MovementProblem &problem) {
  const Stretches stretches(problem);
  LeastMovement least{.bytes = 0,
                      .away = std::vector<int64_t>(problem.absences.size()),
                      .prices = std::vector<int64_t>(problem.live.size())};
  if (stretches.missing.empty())
    return least;
  const int64_t most = *std::ranges::max_element(stretches.missing);
  CheapestFlow flow(stretches.missing.size() + 1);
  for (size_t i = 0; i < stretches.missing.size(); ++i) {
    flow.addEdge(i, i + 1, most - stretches.missing[i], 0);
    flow.addEdge(i + 1, i, unlimited, 0);
  }
  std::vector<std::pair<size_t, size_t>> edges; // absence, edge
  for (size_t i = 0; i < problem.absences.size(); ++i) {
    const MovementProblem::Absence &one = problem.absences[i];
    const size_t begin = stretches.until[size_t(one.begin)], end = stretches.until[size_t(one.end)];
    if (begin != end)
      edges.push_back({i, flow.addEdge(begin, end, one.bytes, one.cost)});
  }
  if (!flow.send(most))
    return std::nullopt;
  for (const auto &[absence, edge] : edges) {
    least.away[absence] = flow.flow(edge);
    least.bytes += least.away[absence] * problem.absences[absence].cost;
  }
  for (size_t i = 0; i < stretches.missing.size(); ++i)
    least.prices[stretches.worst[i]] = flow.distance(i + 1) - flow.distance(i);
  return least;
}

} // namespace ds::scheduling
