//===- RecomputeFrontier.cpp - the best choices, by minimum cuts ------------===//
//
// Two kinds of nodes, one a value ("the backward has it") and one an op ("it is repeated"); the source's side means
// yes.
//
//   source -> value    forbidden to cut       the backward needs the value
//   value  -> its op   bytes of the value     it is there and not made again, so it is kept
//   value  -> sink     bytes of the value     the same of a value that no op may make again
//   op     -> operand  forbidden to cut       what is repeated reads its operands
//   op     -> sink     time of the op         it is repeated
//
// With a price for bytes and one for time, a minimum cut is a best choice. As bytes grow dearer, only the edges of ops
// into the sink grow cheaper in comparison, so that the source's sides contain one another (G. Gallo, M. Grigoriadis
// and R. Tarjan, "A fast parametric maximum flow algorithm", 1989).
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/MinCut.h"
#include "compiler/scheduling/Recompute.h"

#include <cstddef>

namespace ds::scheduling {
namespace {

class Frontier {
public:
  explicit Frontier(const RecomputeProblem &problem) : problem_(problem) {}

  std::vector<RecomputeChoice> run() {
    int64_t bytes = 1, time = 1; // more than any sum
    for (const RecomputeProblem::Value &value : problem_.values)
      bytes += value.bytes;
    for (const RecomputeProblem::Op &op : problem_.ops)
      time += op.time;
    add(choiceOf(problem_, std::vector<char>(problem_.ops.size())));
    add(best(1, bytes)); // what costs no time at all
    const RecomputeChoice first = choices_.back(), last = best(time, 1);
    addBetween(first, last);
    add(last);
    return std::move(choices_);
  }

private:
  /// At prices for one byte and one unit of time.
  RecomputeChoice best(int64_t bytePrice, int64_t timePrice) const {
    const auto values = int32_t(problem_.values.size()), ops = int32_t(problem_.ops.size());
    const int32_t source = values + ops, sink = source + 1;
    MinCut::Capacity forbidden = 1;
    MinCut cut(sink + 1);
    for (int32_t v = 0; v < values; ++v) {
      const RecomputeProblem::Value &value = problem_.values[size_t(v)];
      const MinCut::Capacity price = MinCut::Capacity(value.bytes) * bytePrice;
      cut.addEdge(v, value.producer >= 0 ? values + value.producer : sink, price);
      forbidden += price;
    }
    for (int32_t v = 0; v < values; ++v)
      if (problem_.values[size_t(v)].needed)
        cut.addEdge(source, v, forbidden);
    for (int32_t i = 0; i < ops; ++i) {
      const RecomputeProblem::Op &op = problem_.ops[size_t(i)];
      cut.addEdge(values + i, sink, op.mayRepeat ? MinCut::Capacity(op.time) * timePrice : forbidden);
      for (const int32_t operand : op.operands)
        cut.addEdge(values + i, operand, forbidden);
    }
    const std::vector<char> side = cut.sourceSide(source, sink);
    return choiceOf(problem_, {side.begin() + values, side.begin() + values + ops});
  }

  /// All choices of the hull strictly between two of it, which differ in both sums.
  void addBetween(const RecomputeChoice &fast, const RecomputeChoice &small) {
    const int64_t bytePrice = small.time - fast.time, timePrice = fast.bytes - small.bytes;
    if (bytePrice <= 0 || timePrice <= 0)
      return;
    const auto priceOf = [&](const RecomputeChoice &choice) {
      return MinCut::Capacity(choice.bytes) * bytePrice + MinCut::Capacity(choice.time) * timePrice;
    };
    const RecomputeChoice middle = best(bytePrice, timePrice);
    if (priceOf(middle) >= priceOf(fast))
      return;
    addBetween(fast, middle);
    add(middle);
    addBetween(middle, small);
  }

  void add(const RecomputeChoice &choice) {
    if (choices_.empty() || choice.bytes < choices_.back().bytes)
      choices_.push_back(choice);
  }

  const RecomputeProblem &problem_;
  std::vector<RecomputeChoice> choices_;
};

} // namespace

std::vector<RecomputeChoice> recomputeFrontier(const RecomputeProblem &problem) { return Frontier(problem).run(); }

} // namespace ds::scheduling
